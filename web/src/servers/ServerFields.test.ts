import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineComponent, h, ref } from 'vue'
import { i18n } from '@/locales'
import type { ServerConfig } from '@/wire/restTypes'
import MoreFields from './MoreFields.vue'
import PackagePreview from './PackagePreview.vue'
import { seal, type Draft } from './secrets'
import ServerFields from './ServerFields.vue'

it('keeps what is typed, and seals what looks like a secret when the field is left', async () => {
  const entry = ref<Draft>(seal({ config: { command: 'x', env: { LANG: 'C' } }, secrets: {}, plain: [] }))
  const page = mount(
    defineComponent(() => () =>
      h(ServerFields, { name: 'x', fields: {}, modelValue: entry.value, 'onUpdate:modelValue': (now: Draft) => (entry.value = now) }),
    ),
    { global: { plugins: [i18n] } },
  )
  const env = () => page.get<HTMLTextAreaElement>('textarea[name=env]')
  await env().setValue('LANG=C\nAPI_KEY=typed\nHALF')
  expect(env().element.value).toBe('LANG=C\nAPI_KEY=typed\nHALF')
  expect(entry.value.config.env).toEqual({ LANG: 'C', API_KEY: 'typed' })
  await env().trigger('blur')
  expect(entry.value.secrets).toEqual({ API_KEY: 'typed' })
  expect(env().element.value).toBe('LANG=C\nAPI_KEY=${secret:API_KEY}\nHALF')
  expect(page.get<HTMLInputElement>('input[name=secret-API_KEY]').element.value).toBe('typed')
})

describe('more fields', () => {
  function open(config: ServerConfig, fields: Record<string, string> = {}) {
    const draft: Draft = { config, secrets: {}, plain: [] }
    return mount(MoreFields, { props: { fields, modelValue: draft }, global: { plugins: [i18n] } })
  }

  const said = (wrapper: ReturnType<typeof open>): Draft | undefined => wrapper.emitted<[Draft]>('update:modelValue')?.at(-1)?.[0]

  it('lists the hosts that a program may reach, one a line, and takes none for an empty list', async () => {
    const wrapper = open({ transport: 'stdio-docker', containerImage: 'mcp/fetch', network: ['api.github.com'] })
    const hosts = wrapper.get<HTMLTextAreaElement>('textarea[name="network"]')
    expect(hosts.element.value).toBe('api.github.com')
    await hosts.setValue('api.github.com\n *.example.com:8443 \n')
    expect(said(wrapper)?.config.network).toEqual(['api.github.com', '*.example.com:8443'])
    await hosts.setValue('')
    expect(said(wrapper)?.config.network).toBeUndefined()
  })

  it('shows no list where the word is `none`, and has no such field for what runs elsewhere', () => {
    const none = open({ command: 'serve', network: 'none' })
    expect(none.get<HTMLTextAreaElement>('textarea[name="network"]').element.value).toBe('')
    expect(open({ url: 'https://a.example/mcp' }).find('textarea[name="network"]').exists()).toBe(false)
  })

  it('opens where a host is refused, and says why', () => {
    const wrapper = open({ command: 'serve', network: ['10.0.0.1'] }, { 'config.network': 'not by its address' })
    expect(wrapper.get('details').attributes('open')).toBeDefined()
    expect(wrapper.text()).toContain('not by its address')
  })

  it('says whether the server may ask the model, and nothing where it may not', async () => {
    const wrapper = open({ url: 'https://a.example/mcp', sampling: true })
    const box = wrapper.get<HTMLInputElement>('input[name="sampling"]')
    expect(wrapper.get('details').attributes('open')).toBeDefined()
    expect(box.element.checked).toBe(true)
    await box.setValue(false)
    expect(said(wrapper)?.config).toEqual({ url: 'https://a.example/mcp' })
    await box.setValue(true)
    expect(said(wrapper)?.config.sampling).toBe(true)
  })
})

describe('a package before it is installed', () => {
  let shown: VueWrapper | undefined
  let answers: object[]
  let asked: string[]

  const named = { registry: 'npm', name: 'notes', with: [], extras: [], allowScripts: false }

  async function look(args: string[], config: ServerConfig = { command: 'npx', args }) {
    shown = mount(PackagePreview, { props: { config }, global: { plugins: [i18n] } })
    await vi.advanceTimersByTimeAsync(0)
    await flushPromises()
    return shown
  }

  beforeEach(() => {
    answers = []
    asked = []
    vi.useFakeTimers()
    vi.stubGlobal('fetch', async (_address: string, { body }: { body: string }) => {
      asked.push(body)
      return Response.json(answers.shift())
    })
  })
  afterEach(() => {
    shown?.unmount()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  it('says what is installed, from where and how, before it is added', async () => {
    answers = [{ package: named, version: '1.2.3', summary: 'Keeps notes' }]
    const page = await look(['-y', 'notes'])
    expect(page.text()).toContain('Installs notes 1.2.3 from npm once, in a sandbox that reaches only the registry.')
    expect(page.text()).toContain('Keeps notes')
  })

  it('says of a bundle whether anything is fetched for it, and asks about scripts only then', async () => {
    const bundle = { sha256: 'ab'.repeat(32), values: {} }
    const config = { command: 'python3', args: ['/packages/bundle/a.py'], bundle }
    answers = [
      { package: { ...named, registry: 'bundle', name: bundle.sha256 }, version: '1.0' },
      { package: { ...named, registry: 'bundle', name: bundle.sha256, with: ['mcp>=1', 'httpx'] }, version: '2.0' },
    ]
    const page = await look(config.args, config)
    expect(page.text()).toContain('Unpacks version 1.0 of the bundle once, in a sandbox without network.')
    expect(page.find('input[type=checkbox]').exists()).toBe(false)
    await page.setProps({ config: { ...config, args: [] } })
    await vi.advanceTimersByTimeAsync(400)
    await flushPromises()
    expect(page.text()).toContain('Installs the dependencies of version 2.0 of the bundle (mcp>=1, httpx) from PyPI once')
    await page.get('input[type=checkbox]').setValue(true)
    expect(page.emitted('allow')).toEqual([[true]])
  })

  it('says why something cannot be installed, and what helps', async () => {
    answers = [{ package: named, failure: { reason: 'no_such_package', text: 'npm has no package `notes`', remedy: 'check the name' } }]
    const page = await look(['-y', 'notes'])
    expect(page.get('[role=alert]').text()).toBe('npm has no package `notes`: check the name')
  })

  it('asks again once typing rests, and leaves scripts to a person', async () => {
    answers = [{ package: named, version: '1' }, { package: { ...named, name: 'other' }, version: '2' }]
    const page = await look(['notes'])
    await page.setProps({ config: { command: 'npx', args: ['oth'] } })
    await page.setProps({ config: { command: 'npx', args: ['other'] } })
    expect(asked).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(400)
    await flushPromises()
    expect(asked).toHaveLength(2)
    expect(asked[1]).toContain('other')
    expect(page.text()).toContain('Installs other 2')
    await page.get('input[type=checkbox]').setValue(true)
    expect(page.emitted('allow')).toEqual([[true]])
  })
})
