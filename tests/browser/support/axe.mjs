/** The rules of WCAG that a program can check, and no sideways scrolling. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { until } from './until.mjs'

const AXE = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
const WIDTHS = [320, 768, 1280]
/** A usual phone, where the page only has to fit: it has the layout of the smallest width. */
const PHONE = 390
/** The rules that look at colours. All the others find the same in both schemes. */
const OF_COLOURS = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] }

/**
 * How far a page with the frame scrolls as a whole, which it never may: only its parts do. Where scrollbars take room,
 * as they do in these tests, a page that is a pixel too high has a second one.
 */
export function overflow(page) {
  return page.evaluate(() => {
    const { scrollHeight, clientHeight } = document.scrollingElement
    return document.querySelector('.app') ? scrollHeight - clientHeight : 0
  })
}

/**
 * Examines what is on the screen in three widths and both schemes, and whether the page fits there. On the smallest and
 * the widest it also has to fit with its sides exchanged.
 */
export async function isAccessible(page, name, prepare = async () => {}) {
  const found = []
  const isDrawn = () => page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))))
  const obeys = async (where, options) => {
    await isDrawn()
    await page.evaluate(`if (!window.axe) { ${AXE} }`)
    const { violations } = await page.evaluate((options) => window.axe.run(document, { resultTypes: ['violations'], ...options }), options)
    for (const { id, nodes } of violations) found.push(`${name} ${where}: ${id}: ${nodes.slice(0, 3).map(({ html, any }) => `${html.slice(0, 160)} ${any[0]?.message ?? ''}`).join(' | ')}`)
  }
  const fits = async (where) => {
    await isDrawn()
    const sideways = await page.evaluate(() => document.scrollingElement.scrollWidth - innerWidth)
    const downwards = await overflow(page)
    if (downwards > 0) found.push(`${name} ${where}: the frame scrolls by ${downwards} px`)
    if (sideways > 0) found.push(`${name} ${where}: ${sideways} px wider than the screen`)
  }
  const becomes = async (scheme) => {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    await until(`${name} is ${scheme}`, () => page.evaluate((dark) => document.documentElement.classList.contains('dark') === dark, scheme === 'dark'))
  }
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 })
    await prepare(width)
    await becomes('light')
    await obeys(`${width} light`, {})
    await fits(`${width}`)
    await becomes('dark')
    await obeys(`${width} dark`, { runOnly: OF_COLOURS })
    if (width !== WIDTHS[0] && width !== WIDTHS.at(-1)) continue
    await page.evaluate(() => (document.documentElement.dir = 'rtl'))
    await fits(`${width} right to left`)
    await page.evaluate(() => (document.documentElement.dir = 'ltr'))
  }
  await page.setViewportSize({ width: PHONE, height: 800 })
  await prepare(PHONE)
  await fits(`${PHONE}`)
  await page.setViewportSize({ width: 1280, height: 800 })
  assert.deepEqual([...new Set(found)], [])
}
