// Draws one diagram in the sealed frame of diagram.html. The text that is drawn is a model's, so nothing here is to be
// relied on: the page gives this frame no origin, and the policy of diagram.html no network.
;(function () {
  var FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif'

  function say(what) {
    parent.postMessage(what, '*')
  }

  function settings(colours) {
    return {
      startOnLoad: false,
      securityLevel: 'strict',
      look: 'classic',
      suppressErrorRendering: true,
      htmlLabels: false,
      flowchart: { htmlLabels: false },
      maxTextSize: 20000,
      maxEdges: 400,
      fontFamily: FONT,
      theme: 'base',
      themeVariables: {
        darkMode: colours.scheme === 'dark',
        background: colours.paper,
        primaryColor: colours.raised,
        primaryTextColor: colours.ink,
        primaryBorderColor: colours.quiet,
        secondaryColor: colours.paper,
        tertiaryColor: colours.paper,
        lineColor: colours.quiet,
        textColor: colours.ink,
        fontFamily: FONT,
        fontSize: '14px',
      },
      // What a diagram may not say of itself.
      secure: ['secure', 'securityLevel', 'startOnLoad', 'maxTextSize', 'maxEdges', 'suppressErrorRendering', 'htmlLabels', 'flowchart', 'fontFamily', 'themeCSS', 'theme', 'themeVariables'],
    }
  }

  function draw(asked) {
    document.documentElement.style.colorScheme = asked.colours.scheme
    document.body.style.background = asked.colours.paper
    window.mermaid.initialize(settings(asked.colours))
    return window.mermaid.render('drawing', asked.source).then(function (drawn) {
      document.body.innerHTML = drawn.svg
      var svg = document.querySelector('svg')
      var box = svg.viewBox.baseVal
      say({ width: box.width, height: box.height })
    })
  }

  function fail(error) {
    document.body.textContent = ''
    say({ failed: String((error && error.message) || error) })
  }

  addEventListener('message', function (event) {
    if (event.source !== parent) return
    Promise.resolve(event.data).then(draw).catch(fail)
  })
  var program = document.createElement('script')
  program.src = location.hash.slice(1)
  program.onload = function () {
    say('ready')
  }
  program.onerror = function () {
    say({ failed: 'the program that draws is not there' })
  }
  document.head.append(program)
})()
