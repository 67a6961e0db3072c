/**
 * The clip of the README: a question, a call that waits, a change before the yes, and what came of it. Recorded from the
 * real gateway with its demo model. Writes docs/images/clip.webp.
 */
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import sharp from 'sharp'
import { Gateway } from './support/gateway.mjs'
import { SessionView } from './support/session.mjs'
import { browser, setUp } from './support/story.mjs'

const TO = fileURLToPath(new URL('../../docs/images/clip.webp', import.meta.url))
const VIEWPORT = { width: 1120, height: 700 }
/** Of the recording; the clip is shown at half the width of a wide screen. */
const WIDTH = 896
/** The last picture stays that long before the clip begins anew. */
const LAST_MS = 2_500
const MOST_BYTES = 3_000_000

const app = await Gateway.start({ SPL_LLM_SCRIPTED_PACE_MS: '25' })
const chromium = await browser()
try {
  const context = await chromium.newContext({ viewport: VIEWPORT, colorScheme: 'light' })
  await setUp(app, context)
  const page = await context.newPage()
  await page.goto(`${app.url}/s/new`)
  await new SessionView(page).isReady()
  await showPointer(page)
  const frames = await record(context, page, () => act(page))
  const { size } = await write(frames)
  const seconds = (frames.at(-1).at - frames[0].at) / 1000
  console.log(`${frames.length} pictures of ${seconds.toFixed(1)} s, ${Math.round(size / 1000)} kB`)
  if (size > MOST_BYTES) throw new Error(`the clip has ${size} bytes, and may have ${MOST_BYTES}`)
} finally {
  await chromium.close()
  await app.close()
}

/** What a person does, at the pace of a person. */
async function act(page) {
  const session = new SessionView(page)
  await pause(600)
  await session.composer.pressSequentially('Make two files and show them', { delay: 45 })
  await pause(300)
  await page.keyboard.press('Enter')
  await session.counts('2 of 2 waiting for you.')
  await pause(1_600)
  await press(page, session.button('Approve: Write notes/one.txt'))
  await session.counts('1 of 2 waiting for you.')
  await pause(900)
  await press(page, session.button('More: Write notes/two.txt'))
  await pause(500)
  await press(page, session.tray.getByRole('menuitem', { name: 'Edit: Write notes/two.txt' }))
  const text = session.tray.getByRole('textbox').first()
  await text.press('Control+End')
  await text.pressSequentially('Changed before it ran.', { delay: 40 })
  await pause(800)
  await press(page, session.tray.getByRole('button', { name: /^Approve edited/ }))
  await session.button('Approve: Read notes/one.txt').waitFor()
  await pause(700)
  await press(page, session.button(/^Approve all 2/, { exact: false }))
  await session.answer()
  await pause(600)
}

async function press(page, button) {
  const { x, y, width, height } = await button.boundingBox()
  await page.mouse.move(x + width / 2, y + height / 2, { steps: 12 })
  await pause(500)
  await button.click()
}

/** A recording has no pointer of its own. */
function showPointer(page) {
  return page.evaluate(() => {
    const dot = document.createElement('div')
    dot.style.cssText = 'position:fixed;z-index:9999;inset:0 auto auto 0;width:20px;height:20px;margin:-10px;border-radius:50%;background:#146c4355;border:2px solid #146c43;pointer-events:none;translate:-40px -40px'
    document.body.append(dot)
    addEventListener('mousemove', ({ clientX, clientY }) => (dot.style.translate = `${clientX}px ${clientY}px`), true)
  })
}

/** Each picture that differs from the one before, with its moment in milliseconds. */
async function record(context, page, run) {
  const cdp = await context.newCDPSession(page)
  const frames = []
  cdp.on('Page.screencastFrame', ({ data, metadata, sessionId }) => {
    frames.push({ data: Buffer.from(data, 'base64'), at: metadata.timestamp * 1000 })
    void cdp.send('Page.screencastFrameAck', { sessionId })
  })
  await cdp.send('Page.startScreencast', { format: 'png', everyNthFrame: 4 })
  await run()
  await cdp.send('Page.stopScreencast')
  return frames
}

async function write(frames) {
  const delay = frames.map(({ at }, index) => (index + 1 < frames.length ? Math.max(20, Math.round(frames[index + 1].at - at)) : LAST_MS))
  const pictures = await Promise.all(frames.map(({ data }) => sharp(data).resize({ width: WIDTH }).png().toBuffer()))
  return sharp(pictures, { join: { animated: true } }).webp({ quality: 72, effort: 5, minSize: true, delay, loop: 0 }).toFile(TO)
}
