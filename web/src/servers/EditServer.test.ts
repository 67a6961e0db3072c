// @vitest-environment happy-dom
import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import type { ServerConfig, ServerItem } from '@/wire/restTypes'
import EditServer from './EditServer.vue'

const CONFIG: ServerConfig = {
  enabled: true,
  timeout: 5,
  url: 'https://old.test/mcp',
  headers: { 'X-Plain': '••••', Authorization: 'Bearer ${secret:T}' },
  workspace: 'none',
  trusted: false,
}
const GIVEN = 'it was given for another address or program'

let asked: string[]
let answers: (() => Response | Promise<Response>)[]
/** What the form finds when it looks what somebody else did meanwhile. */
let now: ServerItem | null
let page: VueWrapper

const item = (config: Partial<ServerConfig> = {}, secrets = ['T']) =>
  ({ name: 'tracker', source: 'tenant', transport: 'http', enabled: true, config: { ...CONFIG, ...config }, secrets }) as unknown as ServerItem
const refusal = (status: number, ...fields: string[]) =>
  Response.json({ detail: 'refused', errors: fields.map((field) => ({ field, message: GIVEN })) }, { status })
const done = () => new Response(null, { status: 204 })

beforeEach(() => {
  asked = []
  answers = []
  now = item()
  vi.stubGlobal('fetch', async (url: string, { method, body }: { method: string; body?: string }) => {
    if (method === 'GET') return now ? Response.json(now) : refusal(404)
    asked.push([method, new URL(url, 'http://sepal.test').pathname.split('/').slice(3).join('/'), body].filter(Boolean).join(' '))
    return answers.shift()?.() ?? Response.json(item())
  })
})
afterEach(() => {
  page.unmount()
  vi.unstubAllGlobals()
})

function open(stored = item()): void {
  now = stored
  const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/', component: {} }] })
  page = mount(EditServer, { props: { item: stored }, global: { plugins: [i18n, router] }, attachTo: document.body })
}
const type = (name: string, text: string) => page.get(`[name="${name}"]`).setValue(text)
const value = (name: string) => page.get<HTMLInputElement>(`[name="${name}"]`).element.value
const button = (words: string) => page.findAll('button').find((button) => button.text() === words)
const alert = () => page.find('[role=alert]').text()
async function save() {
  await page.get('form').trigger('submit')
  await flushPromises()
}

it('shows the entry, and sends only what was changed', async () => {
  open()
  expect(value('url')).toBe('https://old.test/mcp')
  expect(value('headers')).toBe('X-Plain: ••••\nAuthorization: Bearer ${secret:T}')
  expect(value('secret-T')).toBe('')
  expect(document.activeElement?.getAttribute('name')).toBe('url')
  await type('headers', 'X-Plain: ••••\nAuthorization: Bearer ${secret:T}\nAccept: */*')
  answers = [() => Response.json(item({ headers: { ...CONFIG.headers, Accept: '••••' } }))]
  await save()
  expect(asked).toEqual(['PATCH tracker {"headers":{"Accept":"*/*"}}'])
  expect(page.emitted('saved')).toMatchObject([[{ name: 'tracker' }, []]])
})

it('asks nobody when nothing was changed', async () => {
  open()
  await save()
  expect(asked).toEqual([])
  expect(page.emitted('same')).toHaveLength(1)
})

it('stores what looks like a secret after the entry, under a name that no other has', async () => {
  open(item({}, ['T', 'API_KEY']))
  await type('headers', 'X-Plain: ••••\nAuthorization: Bearer ${secret:T}\nApi-Key: typed')
  answers = [() => Response.json(item()), done]
  await save()
  expect(asked).toEqual(['PATCH tracker {"headers":{"Api-Key":"${secret:API_KEY_2}"}}', 'PUT tracker/secrets/API_KEY_2 {"value":"typed"}'])
  expect(page.emitted('saved')).toHaveLength(1)
})

it('keeps every value until the only thing in the way is what was typed again', async () => {
  open()
  await type('url', 'https://new.test/mcp')
  answers = [() => refusal(400, 'headers.X-Plain', 'secrets.T')]
  await save()
  expect(asked).toEqual(['PATCH tracker {"url":"https://new.test/mcp"}'])
  expect(alert()).toBe('Not changed. Fix the marked fields.')
  expect(page.text()).toContain('X-Plain was given for another address or program. Type its value again')
  expect(page.text()).toContain('This value was given for another address or program. Type it again')
  expect(document.activeElement?.getAttribute('name')).toBe('headers')
  // One of the two alone removes nothing.
  await type('secret-T', 'again')
  answers = [() => refusal(400, 'headers.X-Plain', 'secrets.T')]
  await save()
  expect(asked.slice(1)).toEqual(['PATCH tracker {"url":"https://new.test/mcp"}'])
  await type('headers', 'Authorization: Bearer ${secret:T}')
  answers = [() => refusal(400, 'secrets.T'), done, () => Response.json(item({ url: 'https://new.test/mcp' })), done]
  await save()
  const patch = 'PATCH tracker {"url":"https://new.test/mcp","headers":{"X-Plain":null}}'
  expect(asked.slice(2)).toEqual([patch, 'DELETE tracker/secrets/T', patch, 'PUT tracker/secrets/T {"value":"again"}'])
  expect(page.emitted('saved')).toHaveLength(1)
})

it('lets a secret go that nothing refers to, when somebody says so', async () => {
  open(item({}, ['T', 'OLD']))
  expect(page.text()).not.toContain('OLD')
  await type('url', 'https://new.test/mcp')
  await type('secret-T', 'again')
  answers = [() => refusal(400, 'secrets.OLD', 'secrets.T')]
  await save()
  expect(asked).toHaveLength(1)
  const tick = page.findAll('label').find((label) => label.text().startsWith('Also remove OLD'))
  expect(tick?.get('input').attributes('aria-invalid')).toBe('true')
  await tick?.get('input').setValue(true)
  expect(tick?.get('input').attributes('aria-invalid')).toBe('false')
  answers = [() => refusal(400, 'secrets.OLD', 'secrets.T'), done, done, () => Response.json(item()), done]
  await save()
  expect(asked.slice(2).map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([
    'DELETE tracker/secrets/OLD',
    'DELETE tracker/secrets/T',
    'PATCH tracker',
    'PUT tracker/secrets/T',
  ])
})

it('says what is already removed when the change fails after all, and keeps what was typed', async () => {
  open()
  await type('url', 'https://new.test/mcp')
  await type('secret-T', 'again')
  answers = [() => refusal(400, 'secrets.T'), done, () => refusal(400, 'config.url')]
  await save()
  expect(alert()).toBe('Not changed. Fix the marked fields. Already removed, and now only in this form: T.')
  expect(value('secret-T')).toBe('again')
  answers = [() => Response.json(item({ url: 'https://new.test/mcp' }, [])), done]
  await save()
  expect(asked.slice(3)).toEqual(['PATCH tracker {"url":"https://new.test/mcp"}', 'PUT tracker/secrets/T {"value":"again"}'])
})

it('goes on from what the server has when only the entry was saved', async () => {
  open()
  await type('headers', 'X-Plain: ••••\nAuthorization: Bearer ${secret:T}\nApi-Key: typed')
  const theirs = { ...CONFIG.headers, 'Api-Key': '${secret:API_KEY}', 'X-Theirs': '••••' }
  answers = [() => Response.json(item({ headers: theirs })), () => refusal(503)]
  await save()
  expect(alert()).toBe('The entry is saved, but not all of its secrets. refused')
  expect(value('headers')).toContain('X-Theirs: ••••')
  answers = [done]
  await save()
  expect(asked.slice(2)).toEqual(['PUT tracker/secrets/API_KEY {"value":"typed"}'])
  expect(page.emitted('saved')).toMatchObject([[{ config: { headers: theirs } }, ['headers']]])
})

it('sends no mask to a place where none was shown, and no line that is not finished', async () => {
  open(item({ url: 'https://old.test/mcp?••••' }))
  await type('url', 'https://old.test/other?••••')
  await type('headers', 'X-Other: ••••\nAuthorization Bearer')
  await save()
  expect(asked).toEqual([])
  expect(page.text()).toContain('Type all of it.')
  expect(page.text()).toContain('X-Other: the dots belong to the value')
  expect(page.text()).toContain('This line has no name before a colon: Authorization Bearer')
})

it('shows what has no field of its own', async () => {
  open()
  await type('url', 'https://new.test/mcp')
  answers = [() => refusal(400, 'enabled')]
  await save()
  expect(alert()).toContain(`enabled: ${GIVEN}`)
})

it('says that the server was removed meanwhile, and keeps what was typed', async () => {
  open()
  await type('url', 'https://new.test/mcp')
  now = null
  await save()
  expect(asked).toEqual([])
  expect(alert()).toBe('Not saved. Someone removed this server.')
  expect(value('url')).toBe('https://new.test/mcp')
  expect(page.emitted('saved')).toBeUndefined()
})

it('names what somebody else changed meanwhile', async () => {
  open()
  await type('url', 'https://old.test/other')
  answers = [() => Response.json(item({ url: 'https://old.test/other', timeout: 9 }))]
  await save()
  expect(page.emitted('saved')).toMatchObject([[{ config: { timeout: 9 } }, ['timeout']]])
})

it('puts nothing in the place of what somebody else wrote meanwhile before it was seen', async () => {
  open()
  await type('url', 'https://old.test/mine')
  await type('headers', 'X-Plain: plain\nAuthorization: Bearer ${secret:T}\nApi-Key: mine')
  await page.get('[name=headers]').trigger('blur')
  // What is to stand in plain text stays so.
  await page.get('[aria-label="Keep API_KEY sealed"]').setValue(false)
  now = item({ url: 'https://old.test/theirs', timeout: 9, headers: { Authorization: 'Bearer ${secret:T}', 'X-Theirs': '••••' } })
  await save()
  expect(asked).toEqual([])
  expect(alert()).toContain('Not saved yet.')
  expect(page.text()).toContain('to replace what someone else wrote: https://old.test/theirs')
  expect(page.text()).toContain('X-Plain: Someone else changed this too.')
  expect(document.activeElement?.getAttribute('name')).toBe('url')
  expect(value('url')).toBe('https://old.test/mine')
  const headers = { Authorization: 'Bearer ${secret:T}', 'X-Theirs': '••••', 'X-Plain': 'plain', 'Api-Key': 'mine' }
  expect(value('headers').split('\n').sort()).toEqual(Object.entries(headers).map((pair) => pair.join(': ')).sort())
  answers = [() => Response.json(item({ url: 'https://old.test/mine', timeout: 9, headers }))]
  await save()
  expect(asked).toEqual(['PATCH tracker {"url":"https://old.test/mine","headers":{"X-Plain":"plain","Api-Key":"mine"}}'])
  expect(page.emitted('saved')).toMatchObject([[{ config: { timeout: 9 } }, ['timeout']]])
})

it('sends a value to no place that somebody else chose meanwhile before it was seen', async () => {
  open()
  await type('secret-T', 'typed for the old place')
  now = item({ url: 'https://theirs.test/mcp' }, [])
  await save()
  expect(asked).toEqual([])
  expect(value('url')).toBe('https://theirs.test/mcp')
  expect(value('secret-T')).toBe('typed for the old place')
  expect(page.text()).toContain('Someone else changed it to this.')
  answers = [done]
  await save()
  expect(asked).toEqual(['PUT tracker/secrets/T {"value":"typed for the old place"}'])
})

it('saves once, however often it is pressed', async () => {
  open()
  await type('url', 'https://old.test/other')
  let answer: (response: Response) => void = () => undefined
  answers = [() => new Promise((resolve) => (answer = resolve))]
  await save()
  expect(button('Saving')?.attributes('aria-disabled')).toBe('true')
  expect(page.get('form').attributes('aria-busy')).toBe('true')
  await save()
  await page.get('form').trigger('keydown', { key: 'Escape' })
  expect(page.emitted('leave')).toBeUndefined()
  answer(Response.json(item({ url: 'https://old.test/other' })))
  await flushPromises()
  expect(asked).toHaveLength(1)
  expect(page.emitted('saved')).toHaveLength(1)
})

it('leaves at once with Escape, and asks first when something was typed', async () => {
  open()
  const escape = (repeat = false) => page.get('[name=url]').trigger('keydown', { key: 'Escape', repeat })
  await escape()
  expect(page.emitted('leave')).toHaveLength(1)
  await type('url', 'https://new.test/mcp')
  await escape()
  await flushPromises()
  expect(page.emitted('leave')).toHaveLength(1)
  expect(document.activeElement?.textContent?.trim()).toBe('Keep editing')
  await escape(true)
  expect(page.text()).toContain('Your changes are not saved.')
  await escape()
  await flushPromises()
  expect(document.activeElement?.textContent?.trim()).toBe('Cancel')
  expect(value('url')).toBe('https://new.test/mcp')
  await button('Cancel')?.trigger('click')
  await button('Discard')?.trigger('click')
  expect(page.emitted('leave')).toHaveLength(2)
})
