// Sets the theme before the first paint. A file of its own, because the page allows no inline script.
(function () {
  var choice = null
  try {
    choice = localStorage.getItem('sepal.theme')
  } catch (_) {
    // A browser that refuses storage follows the system.
  }
  var dark = choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.classList.toggle('dark', dark)
})()
