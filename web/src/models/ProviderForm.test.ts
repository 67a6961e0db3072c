import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { createPinia, setActivePinia } from 'pinia'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import type { LocalServer, ProviderChange, ProviderItem } from '@/wire/restTypes'
import ProviderForm from './ProviderForm.vue'

const asked = vi.hoisted(() => ({ tests: [] as [string, unknown][], saved: [] as [string, unknown][], answer: {}, servers: [] as LocalServer[], looks: 0 }))
vi.mock('@/wire/rest', () => ({
  rest: {
    testProvider: async (id: string, body: unknown) => {
      asked.tests.push([id, body])
      return { ok: true, latencyMs: 120, models: ['one', 'two'], model: 'one', isDefault: false, ...asked.answer }
    },
    localServers: async () => {
      asked.looks += 1
      return { items: asked.servers }
    },
    putProvider: async (id: string, body: unknown) => void asked.saved.push([id, body]),
  },
}))

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/:any*', component: {} }] })

beforeEach(() => {
  setActivePinia(createPinia())
  asked.tests = []
  asked.saved = []
  asked.answer = {}
  asked.servers = []
  asked.looks = 0
})

function render(item?: ProviderItem): VueWrapper {
  return mount(ProviderForm, { props: { taken: [], item }, global: { plugins: [i18n, router] } })
}

const field = (wrapper: VueWrapper, name: string) => wrapper.get<HTMLInputElement>(`input[name="${name}"]`)

describe('the form of a provider', () => {
  it('tries a key that is pasted at once, with the provider whose key it is', async () => {
    const wrapper = render()
    await field(wrapper, 'apiKey').setValue('sk-ant-x')
    await field(wrapper, 'apiKey').trigger('paste')
    await flushPromises()
    expect(asked.tests).toEqual([['anthropic', expect.objectContaining({ kind: 'anthropic', apiKey: 'sk-ant-x' })]])
    expect(wrapper.text()).toContain('This is a key of Anthropic.')
    expect(wrapper.get('.found').text()).toContain('two')
    expect(asked.saved).toEqual([])
  })

  it('takes over the address at which a provider was found, and tells what its list lacks', async () => {
    asked.answer = { baseUrl: 'http://h/v1', leftOut: ['an entry of the list of models has no name: `{}`'] }
    const wrapper = render()
    await wrapper.get('input[type=radio][value=other]').setValue(true)
    await field(wrapper, 'baseUrl').setValue('http://h')
    await field(wrapper, 'apiKey').setValue('key')
    await field(wrapper, 'apiKey').trigger('paste')
    await flushPromises()
    expect(field(wrapper, 'baseUrl').element.value).toBe('http://h/v1')
    expect(wrapper.get('.tested').text()).toContain('It answers at http://h/v1')
    expect(wrapper.get('.tested').text()).toContain('has no name')
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(asked.saved).toEqual([[expect.any(String), expect.objectContaining({ baseUrl: 'http://h/v1' })]])
  })

  it('asks for one thing first, and keeps the rest under "More"', async () => {
    const wrapper = render()
    const first = () => wrapper.findAll('form > :not(details) input:not([type=radio])').map((input) => input.attributes('name'))
    expect(first()).toEqual(['apiKey'])
    await wrapper.get('input[type=radio][value=ollama]').setValue(true)
    expect(first()).toEqual(['baseUrl'])
    expect(wrapper.get('details.more').find('input[name=apiKey]').exists()).toBe(true)
    // What is hidden and wrong would keep the form from being sent without a word.
    expect(wrapper.get<HTMLDetailsElement>('details.more').element.open).toBe(false)
    await wrapper.get('details.more input[name=id]').trigger('invalid')
    expect(wrapper.get<HTMLDetailsElement>('details.more').element.open).toBe(true)
  })

  it('offers the model servers that run beside Sepal first, with a model that can answer', async () => {
    asked.servers = [
      { name: 'ollama', baseUrl: 'http://localhost:11434/v1', models: ['nomic-embed-text', 'qwen3:8b'] },
      { name: 'tgi', baseUrl: 'http://localhost:3000/v1', models: [] },
    ]
    const wrapper = render()
    await flushPromises()
    const tiles = wrapper.findAll('.tile').map((tile) => tile.text())
    expect(tiles.slice(0, 3)).toEqual([expect.stringMatching(/Ollama\s+running, 2 models/), expect.stringMatching(/tgi\s+running, no model yet/), expect.stringContaining('OpenAI')])
    expect((wrapper.get('input[type=radio][value=ollama]').element as HTMLInputElement).checked).toBe(true)
    expect(wrapper.get('select').element.value).toBe('qwen3:8b')
    // Nothing is asked for an answer, and nothing stored, before the person says so.
    expect([asked.tests, asked.saved]).toEqual([[], []])
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(asked.saved).toEqual([['ollama', expect.objectContaining({ baseUrl: 'http://localhost:11434/v1' })]])
    expect(wrapper.emitted('saved')).toEqual([['ollama', 'qwen3:8b']])

    await wrapper.get('input[type=radio][value=tgi]').setValue(true)
    expect(wrapper.text()).toContain('tgi is running, but it has no model yet.')
  })

  it('moves no tile, and changes no choice, of a person who has begun to choose', async () => {
    asked.servers = [{ name: 'ollama', baseUrl: 'http://localhost:11434/v1', models: ['qwen3:8b'] }]
    const wrapper = render()
    await field(wrapper, 'apiKey').setValue('a key of OpenAI')
    await flushPromises()
    expect(wrapper.findAll('.tile')[0]?.text()).toContain('OpenAI')
    expect(wrapper.text()).toMatch(/Ollama\s+running, 1 model/)
    expect(field(wrapper, 'apiKey').element.value).toBe('a key of OpenAI')
  })

  it('looks again when told to, and not at all for a provider that is changed', async () => {
    const wrapper = render()
    await flushPromises()
    expect(wrapper.text()).toContain('No model server runs')
    asked.servers = [{ name: 'ollama', baseUrl: 'http://localhost:11434/v1', models: ['qwen3:8b'] }]
    await wrapper.findAll('button').find((button) => button.text() === 'Look again')?.trigger('click')
    await flushPromises()
    expect((wrapper.get('input[type=radio][value=ollama]').element as HTMLInputElement).checked).toBe(true)
    render({ id: 'p', kind: 'openai-compatible', baseUrl: 'http://x/v1', api: 'auto', hasKey: false, models: [], contextWindows: {}, maxOutputs: {}, efforts: {}, prices: {}, source: 'tenant', isDefault: false } as unknown as ProviderItem)
    await flushPromises()
    expect(asked.looks).toBe(2)
  })

  it('sends a key to no other vendor than the one that it was written for', async () => {
    const wrapper = render()
    await field(wrapper, 'apiKey').setValue('a key of OpenAI')
    await wrapper.get('input[type=radio][value=mistral]').setValue(true)
    expect(field(wrapper, 'apiKey').element.value).toBe('')
    await wrapper.findAll('button').find((button) => button.text() === 'Test')?.trigger('click')
    await flushPromises()
    expect(JSON.stringify(asked.tests)).not.toContain('a key of OpenAI')
  })

  it('asks for what an address lacks before anything is sent', async () => {
    const wrapper = render()
    await wrapper.get('input[type=radio][value=azure]').setValue(true)
    expect(field(wrapper, 'baseUrl').element.value).toBe('https://<resource>.openai.azure.com/openai/v1')
    await field(wrapper, 'apiKey').setValue('key')
    await field(wrapper, 'apiKey').trigger('paste')
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(wrapper.text()).toContain('Replace <resource> with your resource.')
    expect([asked.tests, asked.saved]).toEqual([[], []])
  })

  it('leaves an address that was chosen by hand, whatever the key is', async () => {
    const wrapper = render()
    await wrapper.get('input[type=radio][value=other]').setValue(true)
    await field(wrapper, 'apiKey').setValue('sk-ant-x')
    expect((wrapper.get('input[type=radio][value=other]').element as HTMLInputElement).checked).toBe(true)
  })

  it('shows and sends prices and longest answers, and says what it cannot read', async () => {
    const item = { id: 'p', kind: 'openai-compatible', baseUrl: 'http://x/v1', api: 'auto', hasKey: false, models: [], contextWindows: {}, maxOutputs: { a: 8_192 }, prices: { a: { input: 0.1, output: 0.4 } }, source: 'tenant', isDefault: false } as unknown as ProviderItem
    const wrapper = render(item)
    expect(field(wrapper, 'maxOutputs').element.value).toBe('a=8192')
    expect(field(wrapper, 'prices').element.value).toBe('a=0.1/0.4')
    await field(wrapper, 'prices').setValue('a=cheap')
    await wrapper.get('form').trigger('submit')
    expect(wrapper.text()).toContain('“a=cheap” is not a model=input/output pair.')
    expect(asked.saved).toEqual([])
    await field(wrapper, 'prices').setValue('a=0.2/0.5/0.1')
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    const body = asked.saved[0]?.[1] as ProviderChange
    expect(body).toMatchObject({ maxOutputs: { a: 8_192 }, prices: { a: { input: 0.2, output: 0.5, cached: 0.1 } } })
    expect(body).not.toHaveProperty('cacheTtl')
  })

  it('shows and sends how much models think and how long a cache keeps, and says what it cannot read', async () => {
    const item = { id: 'p', kind: 'anthropic', api: 'auto', hasKey: true, models: [], contextWindows: {}, maxOutputs: {}, efforts: { a: 'low', b: '2000' }, prices: {}, cacheTtl: '1h', source: 'tenant', isDefault: false } as unknown as ProviderItem
    const wrapper = render(item)
    expect(field(wrapper, 'efforts').element.value).toBe('a=low, b=2000')
    expect(wrapper.get('details.more').attributes()).toHaveProperty('open')
    expect((wrapper.get('input[type=radio][value="1h"]').element as HTMLInputElement).checked).toBe(true)
    await field(wrapper, 'efforts').setValue('a=much')
    await wrapper.get('form').trigger('submit')
    expect(wrapper.text()).toContain('“a=much” is not a model=level pair.')
    expect(asked.saved).toEqual([])
    await field(wrapper, 'efforts').setValue('a=High b=1_024')
    await wrapper.get('input[type=radio][value="5m"]').setValue(true)
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(asked.saved[0]?.[1]).toMatchObject({ efforts: { a: 'high', b: '1024' }, cacheTtl: '5m' })
  })

  it('lets the provider make room where it can, and says from how many tokens on', async () => {
    const item = { id: 'p', kind: 'anthropic', api: 'auto', hasKey: true, models: [], contextWindows: {}, maxOutputs: {}, efforts: {}, prices: {}, cacheTtl: '5m', compaction: 'sepal', source: 'tenant', isDefault: false } as unknown as ProviderItem
    const wrapper = render(item)
    expect(wrapper.find('input[name=compactionThreshold]').exists()).toBe(false)
    await wrapper.get('input[type=radio][value=vendor]').setValue(true)
    await field(wrapper, 'compactionThreshold').setValue('60_000')
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(asked.saved[0]?.[1]).toMatchObject({ compaction: 'vendor', compactionThreshold: 60_000 })
    await field(wrapper, 'compactionThreshold').setValue('')
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(asked.saved[1]?.[1]).toMatchObject({ compaction: 'vendor', compactionThreshold: null })
  })

  it('says nothing of who makes room to a provider that cannot', async () => {
    const item = { id: 'p', kind: 'openai-compatible', baseUrl: 'http://x/v1', api: 'auto', hasKey: false, models: [], contextWindows: {}, maxOutputs: {}, efforts: {}, prices: {}, source: 'tenant', isDefault: false } as unknown as ProviderItem
    const wrapper = render(item)
    expect(wrapper.find('input[type=radio][value=vendor]').exists()).toBe(false)
    await wrapper.get('form').trigger('submit')
    await flushPromises()
    expect(asked.saved[0]?.[1]).not.toHaveProperty('compaction')
  })
})
