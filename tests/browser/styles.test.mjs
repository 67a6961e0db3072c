/** The page has its looks whatever file the browser reads first. */
import assert from 'node:assert/strict'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'

closeBrowserAtTheEnd()

story('what styles a part wins over what resets every part', {}, async ({ app, page }) => {
  const box = (locator) => locator.evaluate((element) => {
    const { left, right } = element.getBoundingClientRect()
    const { paddingInlineStart } = getComputedStyle(element)
    return { left, right, padding: parseFloat(paddingInlineStart) }
  })
  const main = await box(page.getByRole('main'))
  const column = await box(page.locator('.column').first())
  const [before, after] = [column.left - main.left, main.right - column.right]
  assert.ok(before > 50 && Math.abs(before - after) < 20, `the column is not in the middle: ${before} and ${after} px`)
  const button = await box(page.getByRole('link', { name: 'New session' }))
  assert.ok(button.padding >= 8, `the button has a padding of ${button.padding} px`)
  await page.goto(`${app.url}/settings`)
  const settings = await box(page.locator('.column').first())
  assert.ok(settings.left - main.left > 50, 'the column of the settings is not in the middle')
})

story('a title has the room that a picker and a gauge would take beside the rail', {}, async ({ page, session }) => {
  await session.say('A title of some words that a person wants to read')
  await session.answer()
  const title = page.locator('.header h1')
  const gauge = page.locator('.header .gauge')
  for (const [width, least, hasGauge] of [[1280, 380, true], [880, 240, false], [768, 200, false], [390, 120, false]]) {
    await page.setViewportSize({ width, height: 800 })
    const has = await title.evaluate((element) => element.getBoundingClientRect().width)
    assert.ok(has >= least, `at ${width} px the title has ${has} px`)
    assert.equal(await gauge.isVisible(), hasGauge, `the gauge at ${width} px`)
  }
})
