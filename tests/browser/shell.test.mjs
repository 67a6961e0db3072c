/** The frame of the page where scrollbars take room, as they do on most desktops; right-to-left text; what files show. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible, overflow } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const model = await ModelStandIn.start()
after(() => model.close())
const env = { ...model.env, SPL_SANDBOX: 'bubblewrap' }
const PLACES = ['approvals', 'servers', 'servers/new', 'usage', 'settings', 'admin/providers', 'admin/rules', 'admin/system']
/** What a scroller would have to hold if it were not the container of the hidden text in it. */
const ESCAPED = () =>
  [...document.querySelectorAll('.app .unseen, .app .sr-only')].flatMap((hidden) => {
    const scrolls = (box) => /auto|scroll/.test(getComputedStyle(box).overflowY)
    let scroller = hidden.parentElement
    while (scroller && !scrolls(scroller)) scroller = scroller.parentElement
    const holder = hidden.offsetParent
    return !scroller || !holder || scroller.contains(holder) ? [] : [`${hidden.tagName} ${hidden.textContent.trim().slice(0, 40)}`]
  })

async function write(session, path, content) {
  const said = `Wrote ${content.length} characters: ${content.slice(0, 6).trim()}`
  model.willCall(['write_file', { path, content }]).willSay(said)
  const before = await session.answers().count()
  await session.say(`write ${path}`)
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  await session.answer(before + 1)
}

async function never(page, where) {
  assert.equal(await overflow(page), 0, `${where}: the frame scrolls`)
  assert.deepEqual(await page.evaluate(ESCAPED), [], `${where}: hidden text leaves its scroller`)
}

story('the frame never scrolls, on no page and whatever a session holds', { env }, async ({ app, page, session }) => {
  assert.ok(await page.evaluate(() => {
    const box = Object.assign(document.createElement('div'), { style: 'overflow: scroll; width: 100px; position: fixed' })
    document.body.append(box)
    const room = box.offsetWidth - box.clientWidth
    box.remove()
    return room > 0
  }), 'scrollbars take room in these tests')
  for (const n of [1, 2, 3, 4]) await write(session, `notes/${n}.txt`, 'line\n'.repeat(40))
  await never(page, 'a session')
  await page.getByRole('button', { name: 'Files', exact: true }).click()
  await page.getByRole('treeitem').first().waitFor()
  await never(page, 'a session with its files')
  for (const place of PLACES) {
    await page.goto(`${app.url}/${place}`)
    await page.getByRole('heading', { level: 1 }).waitFor()
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 700 })
      await never(page, `${place} at ${width}`)
    }
  }
})

story('the open page is marked in the list of pages', { env }, async ({ page }) => {
  const nav = page.getByRole('navigation', { name: 'Sessions' })
  for (const name of ['MCP servers', 'Usage', 'Settings']) {
    const link = nav.getByRole('link', { name })
    await link.click()
    await until(`${name} is marked`, async () => (await link.getAttribute('aria-current')) === 'page')
    assert.equal(await nav.locator('[aria-current=page]').count(), 1)
  }
})

story('text that is written from right to left is drawn so, block by block, and while it is typed', { env }, async ({ page, session }) => {
  model.willSay('# عنوان\n\nفقرة من النص with English\n\n- عنصر\n- item\n\n> اقتباس\n\n| عمود | عمود |\n|---|---|\n| خلية | خلية |\n\nAn English paragraph.')
  await session.composer.fill('اكتب ملفا')
  assert.equal(await session.composer.evaluate((field) => getComputedStyle(field).direction), 'rtl')
  await session.composer.press('Enter')
  await session.answer()
  const said = session.log.locator('.said .md > *')
  const directions = await said.evaluateAll((blocks) => blocks.map((block) => [block.tagName, getComputedStyle(block).direction]))
  assert.deepEqual(directions, [['H3', 'rtl'], ['P', 'rtl'], ['UL', 'rtl'], ['BLOCKQUOTE', 'rtl'], ['DIV', 'rtl'], ['P', 'ltr']])
  assert.equal(await session.log.locator('.user .md p').evaluate((block) => getComputedStyle(block).direction), 'rtl')
  const entry = await session.log.locator('.said .md li').nth(1).evaluate((li) => {
    const words = document.createRange()
    words.selectNodeContents(li)
    return li.getBoundingClientRect().right - words.getBoundingClientRect().right
  })
  assert.ok(Math.abs(entry) < 2, `an English entry stands ${entry} px away from its mark`)
  await isAccessible(page, 'a session in Arabic')
})

story('what a person said is not covered by what can be done with it, and a phone shows the title', { env }, async ({ page, session }) => {
  const words = 'Make a list of everything that has to be done before the release, and sort it by who can do it'
  model.willSay('Yes')
  await session.say(words)
  await session.answer()
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 844 })
    const text = session.log.locator('.user .words')
    await text.hover()
    const [one, other] = [await text.boundingBox(), await session.log.getByRole('button', { name: 'Edit', exact: true }).boundingBox()]
    assert.ok(one.x + one.width <= other.x || one.y + one.height <= other.y, `${width}: the button lies over the text`)
  }
  const title = page.getByRole('heading', { level: 1 })
  const { width } = await title.boundingBox()
  assert.ok(width > 200, `the title has ${width} px`)
})

story('an undo is seen wherever the files are shown', { env }, async ({ page, session }) => {
  await write(session, 'plan.md', 'first\n')
  await write(session, 'plan.md', 'second\n')
  await page.getByRole('button', { name: 'Files', exact: true }).click()
  const panel = page.getByRole('complementary', { name: 'Details' })
  await panel.getByRole('treeitem').filter({ hasText: 'plan.md' }).click()
  const preview = panel.getByRole('region', { name: 'Preview of plan.md' })
  await preview.getByText('second').waitFor()

  const changed = page.locator('.changed')
  await changed.nth(1).getByRole('button', { name: '1 file change' }).click()
  await changed.nth(1).getByRole('button', { name: /^Undo/ }).click()
  await page.getByRole('region', { name: 'Undo' }).getByRole('button', { name: 'Undo these changes' }).click()
  await preview.getByText('first').waitFor()
  await changed.nth(1).getByRole('button', { name: '1 file changed (undone)' }).waitFor()

  await changed.nth(0).getByRole('button', { name: '1 file change' }).click()
  await changed.nth(0).getByRole('button', { name: /^Undo/ }).click()
  await page.getByRole('region', { name: 'Undo' }).getByRole('button', { name: 'Undo these changes' }).last().click()
  await preview.waitFor({ state: 'detached' })
})

story('a preview is drawn as code is, and a PDF is not drawn as text', { env }, async ({ page, session }) => {
  await write(session, 'note.txt', 'plain text\n')
  await write(session, 'paper.pdf', '%PDF-1.4\n1 0 obj\n')
  await page.getByRole('button', { name: 'Files', exact: true }).click()
  const panel = page.getByRole('complementary', { name: 'Details' })
  await panel.getByRole('treeitem').filter({ hasText: 'note.txt' }).click()
  const preview = panel.getByRole('region', { name: 'Preview of note.txt' })
  const head = preview.locator('.md-code-head')
  const [name, copy] = [await head.locator('span').boundingBox(), await head.getByRole('button', { name: 'Copy' }).boundingBox()]
  assert.ok(copy.x > name.x + name.width + 20, 'the name and the button stand apart')
  await panel.getByRole('treeitem').filter({ hasText: 'paper.pdf' }).click()
  const pdf = panel.getByRole('region', { name: 'Preview of paper.pdf' })
  await pdf.getByText('PDF files are not shown here.').waitFor()
  assert.ok(!(await pdf.innerText()).includes('obj'))
})

story('a matrix has room between its columns, and no scrollbar', { env }, async ({ session }) => {
  model.willSay('$$\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}$$')
  await session.say('a matrix')
  await session.answer()
  const formula = session.log.locator('.md-math')
  await formula.locator('mtd').first().waitFor()
  const [first, second] = await formula.locator('mtd').evaluateAll((cells) => cells.slice(0, 2).map((cell) => cell.firstElementChild.getBoundingClientRect().toJSON()))
  assert.ok(second.left - first.right > 4, `${second.left - first.right} px between columns`)
  assert.ok(await formula.evaluate((box) => box.offsetHeight === box.clientHeight))
})

story('a printed session has no buttons', { env }, async ({ page, session }) => {
  model.willSay('Yes. `code`\n\n```js\nconst a = 1\n```')
  await session.say('Is it?')
  await session.answer()
  await page.emulateMedia({ media: 'print' })
  const seen = await page.getByRole('button').evaluateAll((buttons) => buttons.filter((button) => button.checkVisibility()).map((button) => button.textContent.trim() || button.ariaLabel))
  assert.deepEqual(seen, [])
})
