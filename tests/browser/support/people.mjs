/** What the stories about people and tenants share: further browsers, where the focus is, and pictures to look at. */
import assert from 'node:assert/strict'
import { browser, watch } from './story.mjs'
import { until } from './until.mjs'

/** Another browser, which shares nothing with the first one. */
export async function elsewhere(act, options = {}) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options })
  try {
    const page = await context.newPage()
    const problems = watch(page)
    await act(page, context)
    assert.deepEqual(problems.errors, [])
  } finally {
    await context.close()
  }
}

export const isFocused = (what, locator) => until(`${what} has the focus`, () => locator.evaluate((it) => it === document.activeElement))

/**
 * Takes screenshots into screenshots-out/, wide and narrow, light and dark, if `PICTURES` is set: they take longer than
 * some stories. `prepare` scrolls to what is looked at.
 */
export async function pictures(page, name, prepare = async () => {}) {
  if (!process.env.PICTURES) return
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 844 })
    await prepare()
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await until(`it is ${colorScheme}`, () => page.evaluate((dark) => document.documentElement.classList.contains('dark') === dark, colorScheme === 'dark'))
      await page.screenshot({ path: `screenshots-out/${name}-${width}-${colorScheme}.png` })
    }
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.setViewportSize({ width: 1280, height: 800 })
}
