/** For everybody: by keyboard, by screen reader, on a small screen; and the doors in and out. */
import assert from 'node:assert/strict'
import { isAccessible } from './support/axe.mjs'
import { closeBrowserAtTheEnd, PERSON, setUp, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

story('axe finds nothing at the doors', { isNew: true }, async ({ app, context, page }) => {
  await page.goto(await app.setupLink())
  await page.getByLabel('Password').waitFor()
  await isAccessible(page, 'welcome')
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Create my account' }).click()
  await page.getByText('2 of 3: A model').waitFor()
  await isAccessible(page, 'welcome, step 2')
  await context.clearCookies()
  await page.goto(`${app.url}/sign-in`)
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
  await isAccessible(page, 'sign-in')
})

story('axe finds nothing in a session', {}, async ({ session, page }) => {
  await isAccessible(page, 'empty session')
  await session.say('make two files and show them')
  await session.button('Approve: Write notes/one.txt').waitFor()
  await isAccessible(page, 'session with tray', async (width) => {
    if (width <= 640) await session.openSheet()
    await session.button('Approve: Write notes/one.txt').waitFor()
  })
})

story('axe finds nothing after the answer and on the system page, and the licences are there', {}, async ({ session, page, app }) => {
  await session.say('run: uname -a')
  await session.press('Approve: Run a command')
  await session.answer()
  await session.row('execute_command').getByRole('button', { expanded: false }).click()
  await isAccessible(page, 'session with an answer')
  await page.goto(`${app.url}/settings/about`)
  await page.getByRole('heading', { name: 'Settings' }).waitFor()
  const licences = await page.getByRole('link', { name: 'Third-party licences' }).getAttribute('href')
  const notices = await page.request.get(new URL(licences, app.url).href)
  assert.equal(notices.headers()['content-type'], 'text/plain; charset=utf-8')
  // One that Vite sees, one that only the worker has, and one of the programs.
  for (const name of ['vue', 'highlight.js', 'tokio']) assert.match(await notices.text(), new RegExp(`^${name} \\d`, 'm'))
  await page.goto(`${app.url}/admin/system`)
  await page.getByText('Everything works.').or(page.getByText(/thing(s are| is) missing/)).first().waitFor()
  await isAccessible(page, 'system')
})

story('axe finds nothing on the pages beside the sessions', {}, async ({ page, app }) => {
  for (const address of ['approvals', 'servers', 'servers/new', 'usage', 'connected', 'admin/providers', 'admin/rules', 'no/such/page']) {
    await page.goto(`${app.url}/${address}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await isAccessible(page, address)
  }
})

story('axe finds nothing in any tab of the panel, nor in the menu of a card', {}, async ({ page, session }) => {
  await session.say('make two files and show them')
  await session.button('More: Write notes/one.txt').waitFor()
  await isAccessible(page, 'the menu of a card', async (width) => {
    if (width <= 640) await session.openSheet()
    // It closes with a change of the window.
    await session.button('More: Write notes/one.txt').click()
    await session.tray.getByRole('menuitem', { name: 'Edit: Write notes/one.txt' }).waitFor()
  })
  for (const tab of ['Files', 'Changes', 'Context', 'Rules', 'Cost']) {
    await page.goto(`${page.url().split('?')[0]}?panel=${tab.toLowerCase()}`)
    await page.getByRole('tab', { name: tab, selected: true }).waitFor()
    await page.getByRole('tabpanel', { name: tab }).locator('> *').first().waitFor()
    await isAccessible(page, tab)
  }
})

story('the whole journey by keyboard', { isNew: true }, async ({ app, context, page, session }) => {
  await setUp(app, context)
  await context.clearCookies()
  await page.goto(app.url)
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('name') ?? document.activeElement?.textContent?.trim())
  const tabTo = async (what) => {
    for (let at = 0; at < 40 && (await focused()) !== what; at++) await page.keyboard.press('Tab')
    assert.equal(await focused(), what)
  }
  const isIn = (place) => page.evaluate((place) => document.activeElement?.closest(place) !== null, place)
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
  await tabTo('name')
  await page.keyboard.type(PERSON.name)
  await page.keyboard.press('Tab')
  await page.keyboard.type(PERSON.password)
  await page.keyboard.press('Enter')
  await session.isReady()
  await until('the focus is in the message field', () => isIn('#message'))

  await page.keyboard.type('make two files and show them')
  await page.keyboard.press('Enter')
  await session.counts('2 of 2 waiting for you.')
  await page.keyboard.press('Alt+ArrowUp')
  await until('the focus is on the card', () => isIn('article.card'))
  await until('A approves', async () => {
    if ((await session.heading()) === 'Write notes/one.txt') await page.keyboard.press('a')
    return (await session.heading()) === 'Write notes/two.txt'
  })
  assert.ok(await isIn('article.card'), 'the focus goes to the next card')
  const reason = session.tray.getByLabel('Reason (optional)')
  await until('R asks for a reason', async () => {
    if (!(await reason.isVisible())) await page.keyboard.press('r')
    return reason.isVisible()
  })
  await until('the reason has the focus', () => isIn('.card-reason'))
  await page.keyboard.type('no second one')
  await until('Enter sends it', async () => {
    if (await reason.isVisible()) await page.keyboard.press('Enter')
    return !(await reason.isVisible())
  })
  await session.counts('1 call waits for you.')
  await until('nothing left the focus on the body', () => page.evaluate(() => document.activeElement !== document.body))
  await page.keyboard.press('Alt+ArrowUp')
  const edited = session.tray.getByRole('button', { name: 'Approve edited' })
  await until('E edits', async () => {
    if (!(await edited.isVisible())) await page.keyboard.press('e')
    return edited.isVisible()
  })
  await until('the form has the focus', () => isIn('.edit-field'))
  await page.keyboard.press('Control+A')
  await page.keyboard.type('my own words')
  await page.keyboard.press('Escape')
  await until('Escape leaves the form', async () => !(await edited.isVisible()))
  assert.ok(await isIn('article.card'), 'the focus stays on the card')
  await session.tray.getByText('Your changes are kept under Edit.', { exact: false }).waitFor()
  await until('E goes on with what was begun', async () => {
    if (!(await edited.isVisible())) await page.keyboard.press('e')
    return edited.isVisible()
  })
  const typed = await session.tray.getByRole('textbox').evaluateAll((fields) => fields.map(({ value }) => value))
  assert.ok(typed.includes('my own words'), typed.join())
  await page.keyboard.press('Escape')
  await until('Escape leaves the form again', async () => !(await edited.isVisible()))
  await page.keyboard.press('Escape')
  await until('Escape leads back to the message', () => isIn('#message'))
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  await session.says('Stopped.').first().waitFor()
  await page.getByRole('button', { name: 'Send' }).waitFor()
  assert.ok(await isIn('#message'))
})

story('what is going on is announced once, in words', {}, async ({ session, page }) => {
  await page.evaluate(() => {
    window.spoken = []
    for (const place of document.querySelectorAll('[aria-live="polite"], [aria-live="assertive"]')) {
      new MutationObserver(() => place.textContent && window.spoken.push(place.textContent)).observe(place, { childList: true, characterData: true, subtree: true })
    }
  })
  await session.say('calls: 2')
  await session.counts('2 of 2 waiting for you.')
  const spoken = () => page.evaluate(() => window.spoken)
  await until('the batch is announced', async () => (await spoken()).some((text) => text.includes('2 calls wait for your approval. Alt plus Up to review.')))
  assert.equal((await spoken()).filter((text) => text.includes('wait for your approval')).length, 1)
  await session.press('Approve all 2')
  const answer = await session.answer()
  await until('the answer is announced', async () => (await spoken()).some((text) => text.startsWith(answer.slice(0, 12))))
  assert.ok((await spoken()).length <= 6, 'tokens never go through the announcer')
})

story('a phone: nothing scrolls sideways, and the tray is a sheet', { context: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } }, async ({ session, page }) => {
  const fits = () => page.evaluate(() => document.scrollingElement.scrollWidth <= innerWidth)
  await session.composer.fill('make two files and show them')
  await page.getByRole('button', { name: 'Send' }).tap()
  const peek = session.tray.getByRole('button', { name: /2 waiting/ })
  await peek.waitFor()
  assert.ok(await fits())
  await peek.tap()
  const approve = session.button('Approve: Write notes/one.txt')
  await approve.waitFor()
  for (const width of [390, 320]) {
    await page.setViewportSize({ width, height: 700 })
    assert.ok(await fits(), `${width}`)
    const { height } = await approve.boundingBox()
    assert.ok(height >= 44, `${height}`)
  }
  await session.press('Approve: Write notes/one.txt')
  await session.press('Approve: Write notes/two.txt')
})

story('the doors: wrong password, used and wrong links, a link from the command line, signing out', { isNew: true }, async ({ app, context, page, session }) => {
  const link = await app.setupLink()
  await page.goto(`${app.url}/welcome#wrong`)
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Password').fill(PERSON.password)
  await page.getByRole('button', { name: 'Create my account' }).click()
  await page.getByRole('alert').getByText('This link was used or has expired.').waitFor()

  await setUp(app, context)
  await context.clearCookies()
  await page.goto('about:blank')
  await page.goto(link)
  await page.getByText('This installation is set up.').waitFor()

  await page.goto(`${app.url}/s/ses_nothing?x=1`)
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Password').fill('not the password')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').getByText('Wrong name or password.').waitFor()

  const [, fresh] = /(http\S+)/.exec(await app.cli('link'))
  await page.goto('about:blank')
  await page.goto(fresh)
  await session.isReady()
  assert.equal(new URL(page.url()).hash, '')
  await page.goto(`${app.url}/settings`)
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
  await page.goto('about:blank')
  await page.goto(fresh)
  await page.getByRole('alert').getByText('This link was used or has expired.').waitFor()
})

story('links that are pasted into an open tab work, though only the hash changes', { isNew: true }, async ({ app, page, session }) => {
  await page.goto(`${app.url}/welcome`)
  await page.getByText('link').first().waitFor()
  await page.goto(await app.setupLink())
  await page.getByLabel('Name').fill(PERSON.name)
  await page.getByLabel('Password').fill(PERSON.password)
  assert.equal(new URL(page.url()).hash, '', 'the secret left the address')
  await page.getByRole('button', { name: 'Create my account' }).click()
  await page.getByText('2 of 3: A model').waitFor()

  await page.context().clearCookies()
  await page.goto(`${app.url}/sign-in`)
  await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
  await page.goto(`${app.url}/sign-in#not-a-secret`)
  await page.getByText('This link was used or has expired.').waitFor()
  const secret = (await app.cli('link')).split('#').at(-1)
  await page.goto(`${app.url}/sign-in#${secret}`)
  await session.isReady()
})
