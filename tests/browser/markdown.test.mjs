/** What people expect of text in a chat: formulas, footnotes, tasks and diagrams, drawn without leaving the origin. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const FENCE = '```'
const TEXT = String.raw`# A formula

The roots are $x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$, it costs $5 and $10[^1].

$$
\int_{-\infty}^{\infty} e^{-x^2}\,dx = \sqrt{\pi}
$$

- [x] read the file
- [ ] write **the test**

| a | b |
|---|---|
| 1 | 2 |

${FENCE}mermaid
flowchart LR
  A[Ask] --> B{Allowed?}
  B -->|yes| C[Run]
  B -->|no| D[Refuse]
${FENCE}

[^1]: As of *November*.
`

const HOSTILE = String.raw`${FENCE}mermaid
%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "themeCSS": "@import url(https://evil.example/x.css);"}}%%
flowchart LR
  A["<img src='https://evil.example/x.png' onerror='parent.caught.push(1)'>"] --> B@{ img: "https://evil.example/y.png", label: "y" }
  click A href "javascript:parent.caught.push(2)"
  style A fill:url(https://evil.example/x.svg)
${FENCE}`

const model = await ModelStandIn.start()

story('formulas, footnotes, tasks and diagrams are drawn', { env: model.env }, async ({ page, app, session, problems }) => {
  model.willSay(TEXT)
  await session.say('draw')
  const said = page.locator('article.said .md')
  await said.locator('math mfrac').first().waitFor()
  assert.equal(await said.locator('math').count(), 2)
  assert.match(await said.innerText(), /it costs \$5 and \$10/)
  assert.deepEqual(await said.locator('input[type=checkbox]').evaluateAll((boxes) => boxes.map((box) => [box.checked, box.disabled])), [[true, true], [false, true]])

  await said.getByRole('button', { name: 'Footnote 1', exact: true }).click()
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Footnote 1')
  await said.getByRole('button', { name: 'Back to the text of footnote 1' }).click()
  assert.equal(await page.evaluate(() => document.activeElement.className), 'md-foot-mark')

  const drawing = said.getByRole('group', { name: 'Diagram' })
  await drawing.waitFor()
  const frame = page.frames().find((candidate) => candidate.url().includes('diagram.html'))
  assert.match(await frame.locator('svg').textContent(), /Allowed\?/)
  assert.equal(await drawing.locator('iframe').getAttribute('sandbox'), 'allow-scripts')
  assert.equal(await said.getByText('flowchart LR').isVisible(), false)
  await said.getByRole('button', { name: 'Show source' }).click()
  assert.equal(await said.getByText('flowchart LR').isVisible(), true)
  await isAccessible(page, 'markdown')
  assert.deepEqual(problems.requests.filter((url) => !url.startsWith(`${app.url}/`) && !url.startsWith('blob:')), [])
})

story('a hostile diagram reaches neither the page nor the network', { env: model.env }, async ({ t, page, app, session, problems }) => {
  t.after(() => model.close())
  await page.evaluate(() => (window.caught = []))
  model.willSay(HOSTILE)
  await session.say('draw')
  const said = page.locator('article.said .md')
  await until('the frame has answered', async () => (await said.getByRole('group', { name: 'Diagram' }).count()) + (await said.getByText('The diagram was not drawn').count()) > 0)
  for (const frame of page.frames().filter((candidate) => candidate.url().includes('diagram.html'))) {
    const tried = frame.evaluate(async (url) => {
      const tries = {
        parent: () => parent.document.title,
        storage: () => localStorage.length,
        cookie: () => document.cookie,
        fetch: () => fetch(url),
      }
      const open = []
      for (const [name, run] of Object.entries(tries)) {
        try {
          await run()
          open.push(name)
        } catch {
          // Refused, as it has to be.
        }
      }
      return open
    }, `${app.url}/api/auth/me`)
    // A diagram that cannot be drawn takes its frame away, and then nothing of it can reach anywhere.
    const escapes = await tried.catch((error) => {
      if (frame.isDetached()) return []
      throw error
    })
    assert.deepEqual(escapes, [])
  }
  assert.deepEqual(await page.evaluate(() => window.caught), [])
  assert.deepEqual(problems.requests.filter((url) => !url.startsWith(`${app.url}/`) && !url.startsWith('blob:')), [], 'no request leaves the origin')
  // What the frame tries is refused by its own policy, which the console says.
  problems.errors.length = 0
})
