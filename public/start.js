// What happens before the first paint. A file of its own, because the page allows no inline script.
;(function () {
  /** After which the program starts without a paint. */
  var UNPAINTED_MS = 500

  var choice = null
  try {
    choice = localStorage.getItem('sepal.theme')
  } catch (_) {
    // A browser that refuses storage follows the system.
  }
  var dark = choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.classList.toggle('dark', dark)

  // Written at build time; while the page is developed, it loads itself.
  var program = document.getElementById('program')
  if (!program) return

  // The first format of a page takes longer than all later ones together, and nothing else is to be done just now.
  setTimeout(function () {
    new Intl.DateTimeFormat().format()
  })

  function preload(href, attributes) {
    document.head.append(Object.assign(document.createElement('link'), { rel: 'preload', href: href, crossOrigin: 'anonymous' }, attributes))
  }

  // The program would hold up the paint of what is there already. What it asks for first is asked for beside it:
  // each would cost a phone one more round trip.
  var isStarted = false
  function start() {
    if (isStarted) return
    isStarted = true
    import(program.href)
    var base = new URL('.', document.baseURI).pathname
    preload(base + 'api/auth/me', { as: 'fetch' })
    if (!/^(s\/.*)?$/.test(location.pathname.slice(base.length))) return
    program.dataset.session.split(' ').forEach(function (file) {
      preload(file, file.endsWith('.css') ? { as: 'style' } : { rel: 'modulepreload' })
    })
  }
  addEventListener('DOMContentLoaded', function () {
    // A tab that is not looked at paints nothing.
    setTimeout(start, document.hidden ? 0 : UNPAINTED_MS)
    new PerformanceObserver(start).observe({ type: 'paint', buffered: true })
  })
})()
