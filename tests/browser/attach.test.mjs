/** Files that go with a message: by the button, by paste and by drop, seen before and after sending. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { deflateSync, crc32 } from 'node:zlib'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const PAPER = Buffer.from('%PDF-1.4 a paper that only tools can read')

/** A picture of one colour. */
function png(width, height, colour) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data])
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
    length.writeUInt32BE(data.length)
    sum.writeUInt32BE(crc32(body))
    return Buffer.concat([length, body, sum])
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 2], 8)
  const row = Buffer.concat([Buffer.from([0]), ...Array.from({ length: width }, () => Buffer.from(colour))])
  const rows = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))
  const magic = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([magic, chunk('IHDR', head), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))])
}

const RED = png(320, 200, [200, 40, 40])
const GREEN = png(64, 64, [40, 160, 60])
const BLUE = png(200, 320, [40, 60, 200])

/** It sees pictures and reads no PDF. */
const model = await ModelStandIn.start()
after(() => model.close())

/** The files of the message that is being written. */
class Files {
  constructor(page) {
    this.page = page
    this.list = page.getByRole('form', { name: 'Message' }).getByRole('list', { name: 'Attached files' })
  }

  chip(name) {
    return this.list.getByRole('listitem').filter({ hasText: name })
  }

  remover(name) {
    return this.list.getByRole('button', { name: `Remove: ${name}` })
  }

  /** By the button, as far as a test can press the system's own chooser. */
  async choose(...files) {
    const input = this.page.locator('input[type=file]')
    await input.setInputFiles(files.map(([name, mimeType, buffer]) => ({ name, mimeType, buffer })))
  }

  /** As the browser tells the page of a paste or a drop. */
  async give(how, name, mimeType, content) {
    const transfer = await this.page.evaluateHandle(([name, type, bytes]) => {
      const transfer = new DataTransfer()
      transfer.items.add(new File([new Uint8Array(bytes)], name, { type }))
      return transfer
    }, [name, mimeType, [...content]])
    if (how === 'drop') {
      await this.page.dispatchEvent('#message', 'drop', { dataTransfer: transfer })
      return
    }
    await transfer.evaluate((clipboardData) => {
      const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true })
      document.querySelector('#message').dispatchEvent(event)
    })
  }

  /** Until the server has it. */
  async has(name) {
    await this.chip(name).getByText(/^[\d.]+ (bytes|kB|MB)$/).waitFor()
  }
}

/** Whether a picture is really drawn. */
async function isDrawn(picture) {
  await picture.scrollIntoViewIfNeeded()
  await until('the picture is drawn', () => picture.evaluate((img) => img.complete && img.naturalWidth > 0))
}

async function shownPictures(session) {
  for (const name of ['red.png', 'green.png', 'blue.png']) await isDrawn(session.log.getByRole('img', { name }))
}

/** Nothing scrolls sideways, and the composer is on the screen. */
async function fits(page) {
  const { width, height } = page.viewportSize()
  // What is laid out anew for another width is so a moment later.
  await until('the page does not scroll sideways', async () => (await page.evaluate(() => document.documentElement.scrollWidth)) <= width)
  const box = await page.getByRole('form', { name: 'Message' }).boundingBox()
  assert.ok(box.x >= 0 && box.x + box.width <= width, JSON.stringify(box))
  assert.ok(box.y >= 0 && box.y + box.height <= height, JSON.stringify(box))
}

// Asserts S3.19.
story('pictures by the button, by paste and by drop are seen before and after sending, and after a reload', { env: model.env }, async ({ page, session }) => {
  const files = new Files(page)
  await session.composer.fill('What do you see?')
  await files.choose(['red.png', 'image/png', RED])
  await files.has('red.png')
  await files.give('paste', 'green.png', 'image/png', GREEN)
  await files.has('green.png')
  await files.give('drop', 'blue.png', 'image/png', BLUE)
  await files.has('blue.png')
  for (const name of ['red.png', 'green.png', 'blue.png']) await isDrawn(files.chip(name).locator('img'))
  assert.equal(await session.composer.inputValue(), 'What do you see?')
  await files.give('drop', 'wrong.png', 'image/png', png(8, 8, [0, 0, 0]))
  await files.has('wrong.png')
  // Removed by the keyboard alone: from the field back to the last button before it.
  await session.composer.focus()
  await page.keyboard.press('Shift+Tab')
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Remove: wrong.png')
  await page.keyboard.press('Enter')
  await files.chip('wrong.png').waitFor({ state: 'detached' })
  await fits(page)

  model.willSay('Three colours')
  await session.composer.press('Enter')
  assert.equal(await session.answer(), 'Three colours')
  await files.list.waitFor({ state: 'detached' })
  const sent = JSON.stringify(model.requests.at(-1))
  assert.equal(sent.split('data:image/png;base64,').length - 1, 3)
  await shownPictures(session)
  await page.reload()
  await session.isReady()
  await shownPictures(session)
})

// Asserts S3.19.
story('what cannot be attached is refused in words, and what was typed is kept', { env: { ...model.env, SPL_LIMIT_ATTACHMENT_MB: '1' } }, async ({ page, session }) => {
  const files = new Files(page)
  await session.composer.fill('Half a thought')
  await files.choose(['large.txt', 'text/plain', Buffer.alloc(1_100_000, 'a')])
  await files.chip('large.txt').getByText(/Not attached: a file may have 1 MiB/).waitFor()
  await files.choose(['tool.exe', 'application/octet-stream', Buffer.from('MZ\0\0 program')])
  await files.chip('tool.exe').getByText(/Not attached: this kind of file cannot be attached; PNG/).waitFor()
  assert.equal(await session.composer.inputValue(), 'Half a thought')
  await page.setViewportSize(PHONE.viewport)
  await fits(page)
  await files.remover('large.txt').click()
  await files.remover('tool.exe').click()
  await files.list.waitFor({ state: 'detached' })
  assert.equal(await session.composer.inputValue(), 'Half a thought')
})

// Asserts S3.19.
story('a paper that the model cannot read is in its workspace, and the transcript says so', { env: { ...model.env, SPL_SANDBOX: 'bubblewrap' } }, async ({ page, session }) => {
  const files = new Files(page)
  await session.composer.fill('Sum it up')
  await files.choose(['Q3 report.pdf', 'application/pdf', PAPER])
  await files.has('Q3 report.pdf')
  model.willCall(['execute_command', { command: 'cat attachments/Q3_report.pdf' }]).willSay('A paper')
  await session.composer.press('Enter')
  const note = 'The model cannot read Q3 report.pdf directly, so the file is in the workspace: /workspace/attachments/Q3_report.pdf'
  await session.log.getByText(note).waitFor()
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  assert.equal(await session.answer(), 'A paper')
  assert.match(JSON.stringify(model.requests.at(-1)), /a paper that only tools can read/)
  const link = session.log.getByRole('link', { name: /Q3 report\.pdf/ })
  assert.match(await link.innerText(), /Q3 report\.pdf\s+41 bytes/)
  await page.reload()
  await session.isReady()
  await session.log.getByText(note).waitFor()
  await link.waitFor()
})

// Asserts S3.19.
story('a phone: the composer fits with its files', { env: model.env, context: PHONE }, async ({ page, session }) => {
  const files = new Files(page)
  const name = `${'a very long name of a picture '.repeat(4)}.png`
  await session.composer.fill('Two lines\nof words')
  await files.choose(['red.png', 'image/png', RED], [name, 'image/png', BLUE], ['Q3 report.pdf', 'application/pdf', PAPER])
  await files.has('Q3 report.pdf')
  await fits(page)
  for (const button of await files.list.getByRole('button').all()) {
    const box = await button.boundingBox()
    assert.ok(box.x + box.width <= 390 && box.height >= 44, JSON.stringify(box))
  }
  model.willSay('Seen')
  await page.getByRole('button', { name: 'Send' }).tap()
  assert.equal(await session.answer(), 'Seen')
  await isDrawn(session.log.getByRole('img', { name: 'red.png' }))
  await fits(page)
})
