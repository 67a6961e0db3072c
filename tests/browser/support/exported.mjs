/** Long sessions, in the form of our own export. */

const ANSWER = 'Read **three** files, see `a.txt`.\n\n- one\n- two\n\n```js\nconst a = 1\n```\n\nAnd a [link](https://docs.example).'

/** A file with a session of that many turns, "Question 1" and "Answer 1" first; `more` ends a question. */
export function exportedSession(turns, more = () => '') {
  const events = []
  const tell = (event, args) => {
    const seq = events.length + 1
    events.push({ seq, at: new Date(Date.UTC(2026, 0, 1) + seq * 10_000).toISOString(), event, args })
  }
  for (let turn = 1; turn <= turns; turn++) {
    tell('user:message', [`Question ${turn}${more(turn)}`, {}])
    tell('agent:response', [`${ANSWER}\n\nAnswer ${turn}.`, { model: 'stub' }])
  }
  return Buffer.from(JSON.stringify({ sepal: { export: 'session', version: 1 }, id: 'long', title: 'Long', events, attachments: {} }))
}
