/** A conversation that takes another way: a message in other words, another session from an answer, and the way back. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

story('a message in other words goes on in a new session, and a switch leads between the two', {}, async ({ page, session }) => {
  await session.say('stream: 3')
  const first = await session.answer()
  await until('the session has its address', async () => /\/s\/ses_\w+$/.test(page.url()))
  const old = page.url()

  // By keyboard alone: the button is reached, the field has the focus, and Escape leaves everything as it was.
  const edit = session.log.getByRole('button', { name: 'Edit' })
  await edit.focus()
  await edit.press('Enter')
  const field = page.getByRole('textbox', { name: 'The message in other words' })
  await until('the field has the focus', () => field.evaluate((area) => area === document.activeElement))
  assert.equal(await field.inputValue(), 'stream: 3')
  await field.press('Escape')
  await field.waitFor({ state: 'detached' })

  await edit.click()
  await field.fill('stream: 5')
  await page.screenshot({ path: 'screenshots-out/fork-edit.png' })
  await page.getByRole('button', { name: 'Ask from here' }).click()
  await until('another session is open', async () => page.url() !== old && /\/s\/ses_\w+$/.test(page.url()))
  const second = await session.answer()
  assert.notEqual(second, first)
  const fork = page.url()
  await session.log.getByText('Begun from a message of another session').waitFor()
  const ways = session.log.getByRole('group', { name: 'Ways that this conversation took' })
  await ways.getByText('2 of 2').waitFor()
  await page.screenshot({ path: 'screenshots-out/fork-made.png' })

  await ways.getByRole('button', { name: 'The way before' }).click()
  await until('the first session is open', async () => page.url() === old)
  await session.isReady()
  await ways.getByText('1 of 2').waitFor()
  assert.equal(await session.answer(), first, 'it stayed as it was')
  await ways.getByRole('button', { name: 'The next way' }).click()
  await until('the fork is open', async () => page.url() === fork)
  await page.reload()
  await ways.getByText('2 of 2').waitFor()
  assert.equal(await session.answer(), second)
})

story('an answer is where another session begins, and a session is saved as a file', {}, async ({ page, session }) => {
  await session.say('stream: 3')
  await session.answer()
  await until('the session has its address', async () => /\/s\/ses_\w+$/.test(page.url()))
  const old = page.url()
  await session.log.getByRole('button', { name: 'Fork from here' }).click()
  await until('another session is open', async () => page.url() !== old && /\/s\/ses_\w+$/.test(page.url()))
  await session.isReady()
  await session.log.getByText('Up to here this happened in another session').waitFor()
  await session.say('stream: 4')
  await session.answer(2)
  const rail = page.getByRole('navigation', { name: 'Sessions' })
  await rail.getByRole('img', { name: 'Forked' }).waitFor()

  await page.setViewportSize({ width: 390, height: 844 })
  await page.screenshot({ path: 'screenshots-out/fork-phone.png' })
  const wide = await page.evaluate(() => document.documentElement.scrollWidth)
  assert.ok(wide <= 390, `nothing scrolls sideways: ${wide}`)
  await page.setViewportSize({ width: 1280, height: 800 })

  const open = rail.locator('li.open')
  await open.hover()
  await open.getByRole('button', { name: /^Menu of/ }).click()
  const downloading = page.waitForEvent('download')
  await page.getByRole('menuitem', { name: 'Save as Markdown' }).click()
  const download = await downloading
  assert.match(download.suggestedFilename(), /\.md$/)
  const text = await readFile(await download.path(), 'utf8')
  assert.match(text, /^# stream: 3\n/)
  assert.equal(text.match(/^## Agent/gm).length, 2, 'the past is in it')
})
