/** The files of a session beside it: written by a call, previewed, uploaded by drop, downloaded, deleted. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { isAccessible } from './support/axe.mjs'
import { ModelStandIn } from './support/model.mjs'
import { closeBrowserAtTheEnd, story } from './support/story.mjs'
import { until } from './support/until.mjs'

closeBrowserAtTheEnd()

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const HOSTILE = '<h1>Report</h1><script>fetch("/api/auth/me").then(() => parent.document.title = "taken")</script>'

const model = await ModelStandIn.start()
after(() => model.close())
const env = { ...model.env, SPL_SANDBOX: 'bubblewrap' }

/** The panel as a person sees it. */
class Panel {
  constructor(page) {
    this.page = page
    this.panel = page.getByRole('complementary', { name: 'Details' })
    this.tree = this.panel.getByRole('tree')
  }

  async open() {
    await this.page.getByRole('button', { name: 'Files', exact: true }).click()
    await this.panel.waitFor()
  }

  line(name) {
    return this.tree.getByRole('treeitem').filter({ hasText: name })
  }

  preview(name) {
    return this.panel.getByRole('region', { name: `Preview of ${name}` })
  }

  /** As the browser tells the page of a drop. */
  async drop(name, content) {
    const transfer = await this.page.evaluateHandle(([name, content]) => {
      const transfer = new DataTransfer()
      transfer.items.add(new File([content], name))
      return transfer
    }, [name, content])
    await this.panel.locator('.files').dispatchEvent('drop', { dataTransfer: transfer })
  }
}

async function write(session, path, content) {
  model.willCall(['write_file', { path, content }]).willSay(`Wrote ${path}`)
  await session.say(`write ${path}`)
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  await session.says(`Wrote ${path}`).waitFor()
}

story('what a call writes is in the files, and what is dropped there is in the workspace', { env }, async ({ page, session, problems }) => {
  const files = new Panel(page)
  await files.open()
  await files.panel.getByText('A new session has no files').waitFor()
  await write(session, 'notes/plan.md', '# The plan\n\n- one\n')
  // The panel was open: it has read the folder anew.
  await files.line('notes').click()
  await files.line('plan.md').click()
  await files.preview('plan.md').getByRole('heading', { name: 'The plan' }).waitFor()

  await write(session, 'report.html', HOSTILE)
  await files.line('report.html').click()
  await files.preview('report.html').getByRole('button', { name: 'Open the page' }).click()
  const frame = files.preview('report.html').locator('iframe')
  assert.equal(await frame.getAttribute('sandbox'), '')
  await frame.contentFrame().getByRole('heading', { name: 'Report' }).waitFor()
  const asked = problems.requests.filter((url) => url.endsWith('/api/auth/me')).length
  assert.ok(asked <= 1, 'the page of the workspace asked for nothing')
  assert.ok(!(await page.title()).includes('taken'))

  await files.drop('table.csv', 'name,value\n"a, b",2\n')
  await files.line('table.csv').click()
  await files.preview('table.csv').getByRole('cell', { name: 'a, b' }).waitFor()
  model.willCall(['execute_command', { command: 'cat table.csv' }]).willSay('Read it')
  await session.say('read the table')
  await session.counts('1 call waits for you.')
  await session.press(`Approve: ${await session.heading()}`)
  await session.says('Read it').waitFor()

  // A name that is taken asks first.
  await files.drop('table.csv', 'name\nother\n')
  await files.panel.getByRole('button', { name: 'Replace table.csv' }).click()
  await files.preview('table.csv').getByRole('cell', { name: 'other' }).waitFor()

  const saving = page.waitForEvent('download')
  await files.preview('table.csv').getByRole('link', { name: 'Download' }).click()
  assert.equal((await saving).suggestedFilename(), 'table.csv')
  const archive = page.waitForEvent('download')
  await files.panel.getByRole('link', { name: 'Download all' }).click()
  assert.equal((await archive).suggestedFilename(), 'workspace.tar.gz')
  await isAccessible(page, 'files')

  await files.preview('table.csv').getByRole('button', { name: 'Delete table.csv' }).click()
  await files.preview('table.csv').getByRole('button', { name: 'Delete', exact: true }).click()
  await until('the file is gone', async () => (await files.line('table.csv').count()) === 0)

  // By keyboard: into the tree, along it, and out of the panel.
  await files.tree.getByRole('treeitem').first().focus()
  await page.keyboard.press('End')
  await page.keyboard.press('Enter')
  await files.preview('report.html').waitFor()
  await page.keyboard.press('Escape')
  await files.panel.waitFor({ state: 'hidden' })
})

story('the card of a call that changes a file shows the difference to the file as it is now', { env }, async ({ page, session }) => {
  await write(session, 'notes/plan.md', 'one\ntwo\nthree\n')
  model.willCall(['write_file', { path: '/workspace/notes/plan.md', content: 'one\n2\nthree\n' }]).willSay('Changed it')
  await session.say('change the plan')
  await session.counts('1 call waits for you.')
  const { card } = session
  await card.getByText('Compared with the file as it is now.').waitFor()
  assert.match(await card.locator('.diff-removed').innerText(), /two/)
  assert.match(await card.locator('.diff-added').innerText(), /2/)
  await isAccessible(page, 'a difference')
  await card.getByRole('button', { name: 'Show the whole new content' }).click()
  await card.locator('.diff-new').getByText('three').waitFor()

  // Somebody changes the file while the call waits.
  const files = new Panel(page)
  await files.open()
  await files.line('notes').click()
  await files.line('plan.md').click()
  await files.preview('plan.md').getByText('three').waitFor()
  await files.drop('plan.md', 'one\n2\nthree\n')
  await files.panel.getByRole('button', { name: 'Replace plan.md' }).click()
  await page.getByText('plan.md uploaded').first().waitFor({ state: 'attached' })
  await card.getByRole('button', { name: 'Read the file again' }).click()
  await card.getByRole('button', { name: 'Show what changes' }).click()
  await card.getByText('No change').waitFor()
  await session.press(`Approve: ${await session.heading()}`)
  await session.says('Changed it').waitFor()
})

story('on a phone the files cover the conversation and give it back', { env, context: PHONE }, async ({ page, session }) => {
  const files = new Panel(page)
  model.willSay('Hello')
  await session.composer.fill('hello')
  await page.getByRole('button', { name: 'Send' }).tap()
  assert.equal(await session.answer(), 'Hello')
  await files.open()
  // By the button, as far as a test can press the system's own chooser.
  await files.panel.locator('input[type=file]').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') })
  const box = await files.panel.boundingBox()
  assert.equal(box.width, 390)
  await files.line('a.txt').click()
  await files.preview('a.txt').getByText('hello').waitFor()
  await files.panel.getByRole('button', { name: 'Close details' }).click()
  await files.panel.waitFor({ state: 'hidden' })
})
