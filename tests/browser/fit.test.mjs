/** What has room on which screen. */
import assert from 'node:assert/strict'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

story('the title of a session has room beside the rail, and the rest of its facts are in the details', {}, async ({ page, session }) => {
  await session.say('Say hello to the readers')
  await session.answer()
  const title = page.getByRole('heading', { level: 1, name: 'Say hello to the readers' })
  await title.waitFor()
  const isCut = () => title.evaluate((h1) => h1.scrollWidth > h1.clientWidth)
  for (const [width, hasGauge] of [[768, false], [880, false], [1280, true], [390, false]]) {
    await page.setViewportSize({ width, height: 800 })
    assert.equal(await page.locator('.header .gauge').isVisible(), hasGauge, `the gauge at ${width} px`)
    if (width >= 768) assert.equal(await isCut(), false, `the title is cut at ${width} px`)
  }
})

story('icons stand in the middle of the narrow rail', {}, async ({ page }) => {
  await page.getByRole('button', { name: 'Collapse the list of sessions' }).click()
  const off = await page.locator('nav .action').evaluateAll((buttons) =>
    buttons.map((button) => {
      const [box, icon] = [button, button.querySelector('svg')].map((part) => part.getBoundingClientRect())
      return Math.round(icon.x + icon.width / 2 - box.x - box.width / 2)
    }),
  )
  assert.ok(off.length >= 5, `${off.length} buttons`)
  assert.deepEqual(off.filter((pixels) => pixels !== 0), [])
})
