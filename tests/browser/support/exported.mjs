/** Long sessions, in the form of our own export. */
import { randomUUID } from 'node:crypto'

const ANSWER = 'Read **three** files, see `a.txt`.\n\n- one\n- two\n\n```js\nconst a = 1\n```\n\nAnd a [link](https://docs.example).'

/** Imports a session of that many turns, "Question 1" and "Answer 1" first, and returns its id; `more` ends a question. */
export async function importSession(app, context, turns, more) {
  const { csrfToken } = await (await context.request.get(`${app.url}/api/auth/me`)).json()
  const headers = { 'X-CSRF-Token': csrfToken, 'Content-Type': 'application/octet-stream' }
  const taken = await context.request.post(`${app.url}/api/sessions/import`, { data: exportedSession(turns, more), headers, timeout: 60_000 })
  if (!taken.ok()) throw new Error(`import: ${taken.status()} ${await taken.text()}`)
  const { imported, skipped } = await taken.json()
  if (imported.length !== 1) throw new Error(`import: ${JSON.stringify(skipped)}`)
  return imported[0].sessionId
}

function exportedSession(turns, more = () => '') {
  const events = []
  const tell = (event, args) => {
    const seq = events.length + 1
    events.push({ seq, at: new Date(Date.UTC(2026, 0, 1) + seq * 10_000).toISOString(), event, args })
  }
  for (let turn = 1; turn <= turns; turn++) {
    tell('user:message', [`Question ${turn}${more(turn)}`, {}])
    tell('agent:response', [`${ANSWER}\n\nAnswer ${turn}.`, { model: 'stub' }])
  }
  return Buffer.from(JSON.stringify({ sepal: { export: 'session', version: 1 }, id: randomUUID(), title: 'Long', events, attachments: {} }))
}
