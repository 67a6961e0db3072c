/** Sessions that others read, sessions that come from elsewhere, and sessions on paper. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { browser, closeBrowserAtTheEnd, PERSON, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

/** Opens the menu of the session that is open, and chooses. */
async function choose(page, name) {
  const open = page.getByRole('navigation', { name: 'Sessions' }).locator('li.open')
  await open.hover()
  await open.getByRole('button', { name: /^Menu of/ }).click()
  await page.getByRole('menuitem', { name }).click()
}

/** What somebody sees who has nothing but the address. */
async function asNobody(address, look) {
  const context = await (await browser()).newContext()
  try {
    const page = await context.newPage()
    const answer = await page.goto(address)
    await look(page, answer)
  } finally {
    await context.close()
  }
}

story('a session is shared by a link that an admin allowed, and no more once that is ended', {}, async ({ app, page, session }) => {
  await session.say('stream: 3')
  const answer = await session.answer()
  await session.address()
  await choose(page, 'Share…')
  const dialog = page.getByRole('dialog', { name: 'Share this session' })
  await dialog.getByText('Sharing by link is off.').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })

  const path = new URL(page.url()).pathname
  await page.getByRole('link', { name: /Settings/ }).click()
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Sharing' }).click()
  const box = page.getByRole('checkbox', { name: 'People can share sessions by link' })
  const allowed = page.waitForResponse((response) => response.url().endsWith('/api/sharing') && response.request().method() === 'PUT')
  await box.check()
  await allowed
  await page.locator(`nav a[href$="${path}"]`).click()
  await session.isReady()

  await choose(page, 'Share…')
  await dialog.getByRole('radio', { name: 'Anyone with the link' }).check()
  await dialog.getByRole('radio', { name: '7 days' }).check()
  await isAccessible(page, 'share')
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  const field = dialog.getByRole('textbox', { name: 'Address' })
  await field.waitFor()
  const address = await field.inputValue()
  assert.ok(address.startsWith(`${app.url}/shared/`), address)
  await page.screenshot({ path: 'screenshots-out/share.png' })
  await asNobody(address, async (other, response) => {
    assert.equal(response.status(), 200)
    await other.getByRole('heading', { name: 'stream: 3', level: 1 }).waitFor()
    assert.ok((await other.locator('main').innerText()).includes(answer))
    assert.equal(await other.locator('button, form, textarea, nav').count(), 0, 'there is nothing to act on')
    await other.screenshot({ path: 'screenshots-out/shared.png' })
  })

  await dialog.getByRole('button', { name: 'Stop' }).click()
  await dialog.getByRole('button', { name: 'Stop' }).waitFor({ state: 'detached' })
  await asNobody(address, async (other, response) => {
    assert.equal(response.status(), 404)
    await other.getByText('This opens nothing').waitFor()
  })
})

const TURNS = 150

/** A conversation of 300 messages, as ChatGPT exports it. */
function exported() {
  const mapping = {}
  const said = (id, parent, role, text) => {
    const metadata = role === 'assistant' ? { model_slug: 'gpt-5' } : {}
    const content = { content_type: 'text', parts: [text] }
    mapping[id] = { id, parent, children: [], message: { author: { role }, create_time: 1_756_000_000 + Number(id), content, recipient: 'all', metadata } }
  }
  for (let turn = 1; turn <= TURNS; turn++) {
    said(String(2 * turn), String(2 * turn - 1), 'user', `Question ${turn}`)
    said(String(2 * turn + 1), String(2 * turn), 'assistant', `Read **three** files.\n\n\`\`\`js\nconst a = ${turn}\n\`\`\`\n\nAnswer ${turn}.`)
  }
  return [{ title: 'Sails', create_time: 1_756_000_000, conversation_id: 'one', current_node: String(2 * TURNS + 1), mapping }, { title: 'Corrupted', id: 'x' }]
}

async function take(page, content) {
  await page.getByRole('button', { name: 'Import…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Import conversations' })
  await dialog.getByLabel('File to import').setInputFiles({ name: 'conversations.json', mimeType: 'application/json', buffer: Buffer.from(content) })
  await dialog.getByRole('button', { name: 'Import', exact: true }).click()
  return dialog
}

story('conversations of another program come in once, and a long one prints whole', {}, async ({ context, page, session }) => {
  const content = JSON.stringify(exported())
  const dialog = await take(page, content)
  await dialog.getByText('1 session imported. 1 was not imported:').waitFor()
  await dialog.getByText('Corrupted').waitFor()
  await isAccessible(page, 'import')
  await page.screenshot({ path: 'screenshots-out/import.png' })
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await take(page, content)
  await dialog.getByText('0 sessions imported. 1 was already here.').waitFor()
  await page.keyboard.press('Escape')
  await take(page, 'hello')
  await dialog.getByText('neither JSON nor a zip').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })

  await page.getByRole('navigation', { name: 'Sessions' }).getByRole('link', { name: 'Sails' }).click()
  await session.log.getByText(`Answer ${TURNS}.`, { exact: true }).waitFor()
  const drawn = await session.log.locator('[data-key]').count()
  assert.ok(drawn < 2 * TURNS, 'the page holds a part of it')
  // The browser's own menu prints what the page holds, and the paper says so.
  const part = session.log.getByText('This is only part of the session.')
  assert.equal(await part.isVisible(), false)
  await page.emulateMedia({ media: 'print' })
  assert.equal(await part.isVisible(), true)
  assert.equal(await session.log.getByRole('button', { name: 'Show earlier' }).isVisible(), false)
  await page.emulateMedia({ media: 'screen' })
  await context.addInitScript(() => {
    window.print = () => (window.wasPrinted = true)
  })
  const opening = context.waitForEvent('page')
  await page.keyboard.press('Control+p')
  const paper = await opening
  await until('the browser was asked to print', () => paper.evaluate(() => window.wasPrinted === true))
  await paper.emulateMedia({ media: 'print', colorScheme: 'dark' })
  const text = await paper.locator('main').innerText()
  for (let turn = 1; turn <= TURNS; turn++) {
    assert.ok(text.includes(`Question ${turn}\n`) && text.includes(`Answer ${turn}.`), `turn ${turn}`)
  }
  const looks = await paper.evaluate(() => {
    const { color, backgroundColor } = getComputedStyle(document.body)
    return { color, backgroundColor, chrome: document.querySelectorAll('nav, button, form, textarea').length }
  })
  assert.deepEqual(looks, { color: 'rgb(0, 0, 0)', backgroundColor: 'rgb(255, 255, 255)', chrome: 0 })
  const pdf = await paper.pdf({ format: 'A4' })
  const pages = pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)?.length ?? 0
  assert.ok(pages >= 10, `${pages} pages`)
})

story('calls of tools can be read on paper', {}, async ({ context, page, session }) => {
  await session.say('run: echo hello')
  await session.press('Approve: Run a command')
  await session.answer()
  await context.addInitScript(() => {
    window.print = () => (window.wasPrinted = true)
  })
  const opening = context.waitForEvent('page')
  await choose(page, 'Print…')
  const paper = await opening
  await until('the browser was asked to print', () => paper.evaluate(() => window.wasPrinted === true))
  await paper.emulateMedia({ media: 'print' })
  const call = paper.locator('details.call')
  await call.getByText('execute_command').waitFor()
  assert.match(await call.innerText(), /approved by ana/)
  assert.equal(await call.locator('pre').first().isVisible(), true, 'its arguments are open')
  // What the page holds whole prints whole from the browser's menu too.
  await page.emulateMedia({ media: 'print' })
  assert.equal(await page.getByText('This is only part of the session.').count(), 0)
})

story('what is shared with the team opens after signing in, and the way back leads nowhere else', {}, async ({ app, page, session }) => {
  await session.say('stream: 3')
  await session.answer()
  await session.address()
  await choose(page, 'Share…')
  const dialog = page.getByRole('dialog', { name: 'Share this session' })
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  const field = dialog.getByRole('textbox', { name: 'Address' })
  await field.waitFor()
  const address = await field.inputValue()

  const signIn = async (other) => {
    await other.getByLabel('Name').fill(PERSON.name)
    await other.getByLabel('Password', { exact: true }).fill(PERSON.password)
    await other.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  await asNobody(address, async (other, response) => {
    assert.equal(response.status(), 401)
    await other.screenshot({ path: 'screenshots-out/shared-signed-out.png' })
    await other.getByRole('link', { name: 'Sign in to Sepal' }).click()
    await signIn(other)
    await other.getByRole('heading', { name: 'stream: 3', level: 1 }).waitFor()
    assert.equal(other.url(), address)
  })
  for (const to of ['//evil.example', '/\\evil.example', 'https://evil.example', '/shared/../..//evil.example']) {
    await asNobody(`${app.url}/sign-in?to=${encodeURIComponent(to)}`, async (other) => {
      await signIn(other)
      await other.getByRole('navigation', { name: 'Sessions' }).waitFor()
      assert.equal(new URL(other.url()).origin, app.url, to)
    })
  }
})
