/** What is to be approved is never cut silently, however much there is and however small the window. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const LINES = 300
const FILE = Array.from({ length: LINES }, (_, at) => `line ${at + 1}${at % 40 === 3 ? ' goes on'.repeat(40) : ''}`).join('\n')
const SCRIPT = `cat > run.sh <<X\n${Array.from({ length: 14 }, (_, at) => `echo ${at}`).join('\n')}\nX`
const THREE = [
  ['write_file', { path: 'src/index.ts', content: FILE }],
  ['execute_command', { command: SCRIPT }],
  ['execute_command', { command: `echo ${'word '.repeat(1_000)}\u202E` }],
]
const WINDOWS = { desk: [1280, 800], narrow: [768, 800], phone: [390, 844], lying: [844, 390] }

/** In the page: what decides can be pressed where it stands, and nothing is wider than the window. */
function look() {
  const buttons = [...document.querySelectorAll('article.card button')].filter((button) => button.offsetParent !== null && !button.closest('.card-body'))
  const reached = (button) => {
    const { left, top, width, height } = button.getBoundingClientRect()
    const hit = document.elementFromPoint(left + width / 2, top + height / 2)
    return hit !== null && button.contains(hit)
  }
  const { top, bottom } = document.querySelector('.card-body').getBoundingClientRect()
  const list = document.querySelector('.tray-list').getBoundingClientRect()
  return {
    buttons: buttons.length,
    covered: buttons.filter((button) => !reached(button)).map((button) => button.textContent.trim()),
    sideways: document.scrollingElement.scrollWidth - innerWidth,
    // What of the text is in view: below the head of the card, above its reasons and decisions.
    height: Math.min(bottom, document.querySelector('.card-end').getBoundingClientRect().top) - Math.max(top, list.top, document.querySelector('.tray-row-open').getBoundingClientRect().bottom),
    edge: document.querySelector('article.card .edge > span')?.textContent ?? null,
  }
}

/** In the page, counted in another way than the page does: the lines whose last character is below the edge. */
function linesBelow() {
  const body = document.querySelector('.card-body')
  const edge = document.querySelector('.card-end').getBoundingClientRect().top + 1
  let below = 0
  for (const pre of body.querySelectorAll('pre')) {
    const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
      const text = walker.currentNode
      for (const { 0: line, index } of text.data.matchAll(/[^\n]+/g)) {
        const range = document.createRange()
        range.setStart(text, index)
        range.setEnd(text, index + line.length)
        if (range.getBoundingClientRect().bottom > edge) below++
      }
    }
  }
  return below
}

async function open({ session, page, model, app }, calls) {
  await page.setViewportSize({ width: 1280, height: 800 })
  await page.goto(`${app.url}/s/new`)
  await session.isReady()
  model.willStream(['As you asked.'], { calls })
  await session.say('go')
  await session.button(/^Approve:/, { exact: false }).waitFor()
}

const model = await ModelStandIn.start()
after(() => model.close())

story('what is cut is counted and one key away, in every window', { env: model.env }, async ({ session, page, app }) => {
  for (const calls of [THREE.slice(0, 1), THREE]) {
    await open({ session, page, model, app }, calls)
    for (const [name, [width, height]] of Object.entries(WINDOWS)) {
      const where = `${calls.length} on ${name}`
      await page.setViewportSize({ width, height })
      await page.keyboard.press('Alt+ArrowUp')
      await session.card.waitFor()
      await until(`${where}: the edge is counted`, async () => /\d+ more lines/.test((await page.evaluate(look)).edge ?? ''))
      // The sheet comes to rest first.
      await until(`${where}: no button is covered`, async () => (await page.evaluate(look)).covered.length === 0)
      const card = await page.evaluate(look)
      assert.deepEqual(card.covered, [], where)
      assert.ok(card.buttons >= 4, where)
      assert.ok(card.sideways <= 0, where)
      assert.ok(card.height >= 60, `${where}: ${card.height} px for the thing itself`)

      await page.keyboard.press('d')
      await until(`${where}: the reader is there`, async () => (await page.evaluate(look)).height > card.height)
      await until(`${where}: all lines are counted`, async () => (await page.evaluate(look)).edge === `${await page.evaluate(linesBelow)} more lines`)
      assert.equal(await session.tray.locator('[data-breaks]').count(), 0, `${where}: nothing is folded`)
      const reader = await page.evaluate(look)
      assert.deepEqual(reader.covered, [], where)
      assert.ok(reader.sideways <= 0, where)
      const box = await session.tray.boundingBox()
      assert.ok(box.y <= 0 && box.height >= height, `${where}: full height`)
      await page.keyboard.press('End')
      await until(`${where}: the end is said`, async () => (await page.evaluate(look)).edge === 'End of the text')
      await page.keyboard.press('Home')
      await until(`${where}: the beginning is there`, () => page.evaluate(() => document.querySelector('.tray-list').scrollTop === 0))
      await page.keyboard.press('Escape')
      await page.keyboard.press('Escape')
      await until(`${where}: back at the message`, () => session.composer.evaluate((field) => field === document.activeElement))
    }
  }
})

story('rows tell calls apart, and one long line is counted by characters', { env: model.env }, async ({ session, page, app }) => {
  await open({ session, page, model, app }, THREE)
  await session.button('Run a command cat > run.sh <<X … 15 more lines').click()
  await session.button('Write src/index.ts new file · 300 lines', { exact: false }).waitFor()
  await session.button(/^Run a command echo word .* more characters …/, { exact: false }).click()
  await until('the edge is counted', () => page.evaluate(() => /^[\d,]+ more characters$/.test(document.querySelector('article.card .edge > span')?.textContent ?? '')))
  await session.tray.getByText('Contains hidden characters').waitFor()

  await page.keyboard.press('d')
  await until('it is whole', async () => (await session.card.locator('pre').first().textContent()) === `echo ${'word '.repeat(1_000)}⟦U+202E⟧`)
  await isAccessible(page, 'the reader')
})

story('keys are named only where they do something', { env: model.env }, async ({ session, page, app }) => {
  await open({ session, page, model, app }, THREE)
  const key = session.card.locator('.ap-key').first()
  await session.composer.focus()
  await until('no letter is named at the message', async () => !(await key.isVisible()))
  await session.tray.getByText('Press Alt+↑ to decide by keyboard').waitFor()
  await page.keyboard.press('Alt+ArrowUp')
  await until('letters are named on the card', () => key.isVisible())
  await session.tray.getByText('Esc: back to the message', { exact: false }).waitFor()
  await until('the reason is asked for', async () => {
    await page.keyboard.press('r')
    return session.tray.getByLabel('Reason (optional)').isVisible()
  })
  assert.equal(await session.tray.locator('.ap-key:visible').count(), 0, 'letters are text in a field')
})
