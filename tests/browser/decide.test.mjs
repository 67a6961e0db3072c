/** Decisions: every way to make one, and all the ways in which none must be made. */
import assert from 'node:assert/strict'
import { sentCommands } from './support/session.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const decisions = (sent) => sent.filter(([name]) => name === 'tool:approval' || name === 'tool:approval_all')

story('a rejection with a reason reaches the model and stays on the record', {}, async ({ session }) => {
  await session.say('run: echo hello')
  await session.button('Reject: Run a command').waitFor()
  const reason = session.tray.getByLabel('Reason (optional)')
  await until('the reason is asked for', async () => {
    if (!(await reason.isVisible())) await session.button('Reject: Run a command').click()
    return reason.isVisible()
  })
  await reason.fill('not on main')
  await until('the reason is sent', async () => {
    if (await reason.isVisible()) await reason.press('Enter')
    return !(await reason.isVisible())
  })
  assert.match(await session.answer(), /not on main/)
  assert.match(await session.row('execute_command').innerText(), /Refused[\s\S]*not on main/)
  await session.isQuiet()
})

story('edited arguments run, and the record shows both', {}, async ({ session, page }) => {
  await session.say('write: a.txt first words')
  await until('the form is open', async () => {
    if (await session.button('More: Write a.txt').isVisible()) await session.choose('Edit: Write a.txt')
    return session.tray.getByRole('button', { name: 'Approve edited' }).isVisible()
  })
  await session.tray.getByLabel('content').fill('other words')
  await until('the edit is sent', async () => {
    const approve = session.tray.getByRole('button', { name: 'Approve edited' })
    if (await approve.isVisible()) await approve.click({ timeout: 1_000 }).catch(() => {})
    return !(await approve.isVisible())
  })
  await session.answer()
  const row = session.row('write_file')
  assert.match(await row.innerText(), /edited/)
  await row.getByRole('button', { expanded: false }).click()
  await row.getByText('Arguments changed by you, next to the original').first().waitFor()
  const record = await row.innerText()
  assert.match(record, /first words/)
  assert.match(record, /other words/)
  await session.say('run: cat a.txt')
  await session.press('Approve: Run a command')
  assert.match(await session.answer(2), /other words/)

  // After a reload the record is the same.
  await page.reload()
  await session.row('write_file').getByRole('button', { expanded: false }).click()
  const again = await session.row('write_file').innerText()
  assert.match(again, /first words/)
  assert.match(again, /other words/)
})

story('a card says whether a write makes a file or replaces one, and how much of it', {}, async ({ session }) => {
  const destructive = 'The server marks this tool as destructive'
  const card = async () => {
    await session.button('Approve: Write a.txt').waitFor()
    return session.tray.innerText()
  }
  await session.say('write: a.txt first words')
  const first = await card()
  assert.match(first, /New file/)
  assert.match(first, /New file: 1 line, \d+ bytes/)
  assert.ok(!first.includes(destructive), 'nothing that is there changes')
  await session.press('Approve: Write a.txt')
  await session.answer()
  await session.say('run: seq 120 > a.txt')
  await session.press('Approve: Run a command')
  await session.answer(2)
  await session.say('write: a.txt other words')
  await session.tray.getByText('Compared with the file as it is now.').waitFor()
  const second = await card()
  assert.match(second, /Replaces 120 lines/)
  assert.match(second, /1 line added, 121 lines removed/)
  assert.ok(second.includes(destructive), 'what is there would be gone')
  await session.button('Show the whole new content').click()
  assert.match(await card(), /New content: 1 line, \d+ bytes\. It replaces 120 lines\./)
})

story('an approval can be taken back until the last one is decided', {}, async ({ session }) => {
  await session.say('make two files and show them')
  await session.press('Approve: Write notes/one.txt')
  await session.press('Take back: Write notes/one.txt')
  await session.counts('2 of 2 waiting for you.')
  await session.press('Approve: Write notes/one.txt')
  await session.counts('1 of 2 waiting for you.')
  assert.equal(await session.row('Running').count(), 0, 'nothing runs until all are decided')
  await session.press('Approve: Write notes/two.txt')
  await session.press('Approve: Read notes/one.txt')
  await session.press('Approve: Read notes/two.txt')
  assert.match(await session.answer(), /The first note/)
})

story('approve all carries the calls that are on the screen', {}, async ({ session, page }) => {
  const sent = sentCommands(page)
  await page.reload()
  await session.isReady()
  await session.say('calls: 3')
  await session.counts('3 of 3 waiting for you.')
  const onScreen = await session.button('Approve all 3').getAttribute('data-call-ids')
  await session.press('Approve all 3')
  await session.answer()
  const [[name, payload]] = decisions(sent)
  assert.equal(name, 'tool:approval_all')
  assert.deepEqual(payload.callIds, onScreen.split(' '))
  assert.equal(payload.callIds.length, 3)
})

/*
 * A batch is announced as a whole, so its fourth call cannot come later than its third. What can happen is that the
 * screen is older than the server: the page has drawn three calls, and the queue has four. The test makes exactly
 * that, by keeping from the page what the server says about the fourth call until the click was made.
 */
story('a call that arrives between the look and the click stays pending', {}, async ({ session, page }) => {
  let hold = true
  const late = []
  const heard = []
  await page.routeWebSocket(/socket\.io/, (socket) => {
    const server = socket.connectToServer()
    socket.onMessage((message) => {
      heard.push(String(message))
      server.send(message)
    })
    server.onMessage((message) => {
      const text = String(message)
      if (hold && text.startsWith('42["tool:approval_required"') && JSON.parse(text.slice(2))[1].queuePosition === 4) {
        late.push(message)
      } else if (hold && late.length > 0 && text.startsWith('42')) {
        late.push(message)
      } else if (hold && text.startsWith('42["tool:queue"')) {
        const [event, state] = JSON.parse(text.slice(2))
        const calls = state.calls.filter(({ queuePosition }) => queuePosition < 4)
        if (calls.length < state.calls.length) late.push(message)
        socket.send(`42${JSON.stringify([event, { ...state, calls }])}`)
      } else {
        socket.send(message)
      }
    })
  })
  await page.reload()
  await session.isReady()
  await session.say('calls: 4')
  await session.counts('3 of 3 waiting for you.')
  const button = session.button('Approve all 3')
  await until('the click counts', async () => {
    if (await button.isVisible()) await button.click({ timeout: 1_000 }).catch(() => {})
    return heard.some((text) => text.includes('tool:approval_all'))
  })
  hold = false
  await page.reload()
  await session.counts('1 of 4 waiting for you.')
  assert.equal(await session.row('Done').count() + (await session.row('Running').count()), 0, 'nothing ran')
  await session.press('Approve: List files')
  await session.answer()
})

story('typing with haste decides nothing and loses no character', {}, async ({ session, page }) => {
  const sent = sentCommands(page)
  await page.reload()
  await session.isReady()
  await session.say('calls: 3')
  const text = 'yes, and run all of it. Are you ready? A r e d s'
  await session.composer.focus()
  const began = performance.now()
  for (const [at, key] of [...text].entries()) {
    await new Promise((resolve) => setTimeout(resolve, began + at * 12.5 - performance.now()))
    await page.keyboard.press(key)
  }
  await page.keyboard.press('Enter')
  await session.counts('3 of 3 waiting for you.')
  await page.getByRole('form', { name: 'Message' }).getByText(text).waitFor()
  assert.deepEqual(decisions(sent), [])
  assert.deepEqual(sent.filter(([name]) => name === 'message').map(([, message]) => message.text), ['calls: 3', text])
  assert.equal(await session.composer.evaluate((field) => field === document.activeElement), true, 'the focus was not moved')
})

story('nothing counts within 400 ms of a change, and no held key decides', {}, async ({ session, page }) => {
  const sent = sentCommands(page)
  await page.addInitScript(() => {
    // The moment the button is there it is pressed, as a click that was on its way would.
    new MutationObserver(() => {
      const button = document.querySelector('[data-decides]')
      if (!button || window.early !== undefined) return
      button.click()
      window.early = button.textContent
    }).observe(document, { childList: true, subtree: true })
  })
  await page.reload()
  await session.isReady()
  await session.say('calls: 2')
  await session.counts('2 of 2 waiting for you.')
  assert.ok(await page.evaluate(() => window.early), 'the early click was made')
  assert.deepEqual(decisions(sent), [])

  // Long after the guard: a held A repeats, and only a fresh press decides.
  await page.keyboard.press('Alt+ArrowUp')
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)))
  const repeat = (key) =>
    page.evaluate((key) => {
      const options = { key, bubbles: true, cancelable: true, repeat: true }
      for (let at = 0; at < 20; at++) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', options))
    }, key)
  await repeat('a')
  await session.button('Approve: List files').focus()
  await repeat('Enter')
  assert.deepEqual(decisions(sent), [])
  await page.keyboard.press('Enter')
  await until('a fresh press decides', () => decisions(sent).length === 1)
})

story('a running command is stopped, and so is the whole turn', {}, async ({ session }) => {
  await session.say('run: sleep 25')
  await session.press('Approve: Run a command')
  await session.log.getByRole('button', { name: 'Stop: Run a command' }).click()
  await session.answer()
  await session.row('Stopped').waitFor()

  await session.say('run: sleep 26')
  await session.press('Approve: Run a command')
  await session.log.getByRole('button', { name: 'Stop: Run a command' }).waitFor()
  await session.stopButton.click()
  await session.log.getByText('Stopped.', { exact: false }).last().waitFor()
  await session.page.getByRole('button', { name: 'Send' }).waitFor()
})

story('somebody else decides: the card says who, and the page goes on', {}, async ({ session, context, app, page }) => {
  const { SessionView } = await import('./support/session.mjs')
  await session.say('run: echo together')
  await session.button('Approve: Run a command').waitFor()
  const other = await context.newPage()
  await other.goto(await session.address())
  const second = new SessionView(other)
  await second.press('Approve: Run a command')
  assert.match(await session.answer(), /together/)
  assert.match(await second.answer(), /together/)
  assert.ok(app.port > 0)
})
