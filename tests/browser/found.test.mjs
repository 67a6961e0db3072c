/** Many tools: the model finds one, and the card shows that tool and nothing of the way to it. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const SHOTS = fileURLToPath(new URL('./screenshots-out/', import.meta.url))
const PAINT = {
  name: 'paint_fence',
  description: 'Paints a fence in a colour',
  inputSchema: { type: 'object', properties: { how: { type: 'string', description: 'The colour.' } }, required: ['how'] },
}

/** A tool server of few lines of shell, with tools enough to take more than a hundredth of the model's window. */
const SCRIPT = `
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$id" "$1"; }
tools='${JSON.stringify(PAINT)}'
n=0
while [ $n -lt 60 ]; do
  tools="$tools,{\\"name\\":\\"other_$n\\",\\"description\\":\\"Does something that is of no interest to anybody.\\",\\"inputSchema\\":{\\"type\\":\\"object\\"}}"
  n=$((n+1))
done
while IFS= read -r line; do
  id=\${line#*\\"id\\":}; id=\${id%%[,\\}]*}
  case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"garden","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer "{\\"tools\\":[$tools]}" ;;
    *'"method":"tools/call"'*) answer '{"content":[{"type":"text","text":"The fence is green."}]}' ;;
  esac
done
`

const model = await ModelStandIn.start()
const env = { ...model.env, SPL_LLM_DEFER_TOOLS_PERCENT: '1' }

story('the model finds one of many tools, and the card shows the tool itself', { env }, async ({ t, app, context, page, session }) => {
  t.after(() => model.close())
  const config = { command: '/bin/sh', args: ['-c', SCRIPT] }
  const { csrfToken } = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const headers = { 'X-CSRF-Token': csrfToken }
  const added = await context.request.post(`${app.url}/api/mcp/add`, { data: { name: 'garden', config }, headers })
  assert.equal(added.status(), 201, await added.text())
  await until('the server has shown its tools', async () => {
    const server = await (await context.request.get(`${app.url}/api/mcp/garden`)).json()
    return server.status === 'healthy'
  })

  model.willCall(['find_tools', { query: 'painting a fence' }])
  model.willCall(['use_tool', { tool: 'paint_fence', arguments: { how: 'green' } }])
  model.willSay('The fence is green now.')
  await session.say('Paint the fence green')
  await session.counts('1 call waits for you.')
  assert.equal(await session.heading(), 'paint_fence')
  const card = await session.tray.innerText()
  assert.match(card, /garden/)
  assert.match(card, /green/)
  assert.doesNotMatch(card, /use_tool/)
  // That it looked is one quiet row.
  await session.row('find_tools').waitFor()
  mkdirSync(SHOTS, { recursive: true })
  await page.screenshot({ path: `${SHOTS}found-card.png` })

  await session.press('Approve: paint_fence')
  assert.equal(await session.answer(), 'The fence is green now.')
  await session.log.getByRole('button', { name: 'Ran 2 calls: 2 done' }).click()
  await session.row('paint_fence').first().waitFor()
  await page.screenshot({ path: `${SHOTS}found-end.png` })

  const [first, second, last] = model.requests
  const names = first.tools.map((tool) => tool.function.name)
  assert.ok(names.includes('find_tools') && names.includes('use_tool'), names.join())
  assert.ok(!names.includes('paint_fence'), names.join())
  assert.deepEqual(second.tools, first.tools)
  assert.deepEqual(last.tools, first.tools)
})
