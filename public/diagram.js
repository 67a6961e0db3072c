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

  // The policy refuses every request already; without these none is even tried.
  function withoutRequests(text) {
    var svg = new DOMParser().parseFromString(text, 'text/html').querySelector('svg')
    svg.querySelectorAll('image, img, script, iframe').forEach(function (element) {
      element.remove()
    })
    svg.querySelectorAll('style').forEach(function (style) {
      style.textContent = style.textContent.replace(/@import[^;]*;?|url\(\s*["']?(?!#)[^)]*\)/gi, '')
    })
    svg.querySelectorAll('*').forEach(function (element) {
      Array.from(element.attributes).forEach(function (attribute) {
        var isLink = /href$|^src|^on/i.test(attribute.name) && attribute.value[0] !== '#'
        if (isLink || /url\(\s*["']?(?!#)/i.test(attribute.value)) element.removeAttribute(attribute.name)
      })
    })
    return svg
  }

  // Words of a label, not elements; `<br>` is a line, and `<<interface>>` a mark of the language.
  function withoutElements(source) {
    return source.replace(/(<?)<(?=[/!a-z])(?!br\s*\/?>)/gi, function (found, before) {
      return before ? found : '#lt;'
    })
  }

  // With which the program would measure a picture.
  window.Image = function () {
    throw new Error('pictures are not drawn')
  }

  function draw(asked) {
    document.documentElement.style.colorScheme = asked.colours.scheme
    document.body.style.background = asked.colours.paper
    window.mermaid.initialize(settings(asked.colours))
    return window.mermaid.render('drawing', withoutElements(asked.source)).then(function (drawn) {
      var svg = withoutRequests(drawn.svg)
      document.body.replaceChildren(svg)
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
