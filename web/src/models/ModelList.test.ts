import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import type { Model, Models } from '@/wire/restTypes'
import { groups, lacks, price, retirement } from './choice'
import { effortWords, readTokens } from './effort'
import ModelList from './ModelList.vue'

const router = createRouter({ history: createMemoryHistory(), routes: [{ path: '/:any*', component: {} }] })
const answer = vi.hoisted(() => ({ models: (): unknown => ({}) }))
vi.mock('@/wire/rest', () => ({ rest: { models: async () => answer.models() } }))

const MODELS: Models = {
  provider: 'one',
  model: 'a',
  models: [
    { id: 'a', name: 'Model A', provider: 'one', contextWindow: 200_000, prices: [{ above: 0, input: 1, output: 5 }], abilities: ['tools', 'images', 'reasoning'] },
    { id: 'b', name: 'Model B', provider: 'one', prices: [], abilities: ['tools'], problem: 'no credit', retiresAt: new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10) },
    { id: 'c', name: '', provider: 'two', prices: [], abilities: ['images'] },
  ],
  problems: [{ provider: 'three', problem: 'no connection' }],
}

beforeEach(() => {
  localStorage.clear()
  answer.models = () => MODELS
})

async function render(effort: string | null = null, model = 'a'): Promise<VueWrapper> {
  const wrapper = mount(ModelList, {
    props: { current: { model, provider: 'one', effort } },
    global: { plugins: [i18n, router], stubs: { DefaultModel: true, TeamCompaction: true } },
    attachTo: document.body,
  })
  await flushPromises()
  return wrapper
}

const names = (wrapper: VueWrapper) => wrapper.findAll('.words').map((words) => words.get('.name').text().split(/\s{2,}| in use/)[0])

describe('the model picker', () => {
  it('says of each model what decides, and never a price that nobody knows', async () => {
    const wrapper = await render()
    const [a = '', b = '', c = ''] = wrapper.findAll('.words').map((words) => words.text())
    expect(a).toContain('200K tokens · $1.00 in, $5.00 out per million')
    expect(a).toContain('in use')
    expect(b).toContain('price unknown · no images')
    expect(b).toMatch(/Retires on \w+ \d+/)
    expect(b).toContain('Last error: no credit')
    expect(c).toContain('no tools')
    expect(wrapper.text()).toContain('three did not list its models. no connection')
    expect(wrapper.text()).toContain('Applies from the next request.')
  })

  it('goes by arrows, and letters go back into the filter', async () => {
    const wrapper = await render()
    const words = wrapper.findAll('.words').map(({ element }) => element)
    await wrapper.get('input').trigger('keydown', { key: 'ArrowDown' })
    expect(document.activeElement).toBe(words[0])
    for (const [key, at] of [['ArrowDown', 1], ['End', 2], ['ArrowDown', 2], ['Home', 0]] as const) {
      document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
      expect(document.activeElement).toBe(words[at])
    }
    words[0]?.dispatchEvent(new KeyboardEvent('keydown', { key: 'x', bubbles: true }))
    expect(document.activeElement).toBe(wrapper.get('input').element)
  })

  it('takes the first that fits', async () => {
    const wrapper = await render()
    await wrapper.get('input').setValue('two')
    await wrapper.get('input').trigger('keydown', { key: 'Enter' })
    expect(wrapper.emitted('choose')).toEqual([[MODELS.models[2]]])
  })

  it('keeps starred models on top, for the next time as well', async () => {
    const wrapper = await render()
    await wrapper.get('[aria-label="Pin c to the top"]').trigger('click')
    expect(names(wrapper)).toEqual(['c', 'Model A', 'Model B'])
    answer.models = () => ({ ...MODELS, models: MODELS.models.slice(0, 2) })
    const later = await render()
    expect(names(later)).toEqual(['c', 'Model A', 'Model B'])
    expect(later.get('.words').attributes('disabled')).toBeDefined()
    expect(later.get('.words').text()).toContain('no longer listed by its provider')
  })

  it('asks how much a model thinks, unless it cannot', async () => {
    const wrapper = await render('8000')
    expect((wrapper.get('select').element as HTMLSelectElement).value).toBe('tokens')
    await wrapper.get('select').setValue('high')
    await wrapper.get('select').setValue('')
    await wrapper.get('select').setValue('tokens')
    await wrapper.get('.number').setValue('many')
    await wrapper.get('form').trigger('submit')
    expect(wrapper.get('form').text()).toContain('Type a whole number.')
    await wrapper.get('.number').setValue('12_000')
    await wrapper.get('form').trigger('submit')
    expect(wrapper.emitted('think')).toEqual([['high'], [null], ['12000']])
    expect((await render(null, 'b')).find('select').exists()).toBe(false)
    expect((await render(null, 'nobody knows')).find('select').exists()).toBe(true)
  })
})

describe('the list of the picker', () => {
  function model(id: string, more: Partial<Model> = {}): Model {
    return { id, name: id, provider: 'p', contextWindow: null, maxOutput: null, prices: [], abilities: [], ...more }
  }

  describe('the model picker', () => {
    const models = [model('gpt-4o', { provider: 'openai' }), model('claude-sonnet', { provider: 'anthropic', name: 'Claude Sonnet' }), model('llama'), model('gpt-5', { provider: 'openai' })]
    const list = (filter: string, starred: string[] = [], problems: { provider: string; problem: string }[] = []) =>
      groups({ models, problems }, filter, new Set(starred)).map(({ provider, problem, choices }) => [provider, problem, choices.map((choice) => choice.model.id)])

    it('finds by every word, wherever it stands, and keeps what belongs to one provider together', () => {
      expect(list('')).toEqual([['openai', null, ['gpt-4o', 'gpt-5']], ['anthropic', null, ['claude-sonnet']], ['p', null, ['llama']]])
      expect(list('SON claude')).toEqual([['anthropic', null, ['claude-sonnet']]])
      expect(list('openai 5')).toEqual([['openai', null, ['gpt-5']]])
      expect(list('nothing')).toEqual([])
    })

    it('puts starred models on top', () => {
      expect(list('', ['p/llama', 'openai/gpt-5'])).toEqual([[null, null, ['llama', 'gpt-5']], ['openai', null, ['gpt-4o']], ['anthropic', null, ['claude-sonnet']]])
    })

    it('keeps what cannot be reached, with the reason', () => {
      expect(list('gone', ['away/gone/model'])).toEqual([[null, null, ['gone/model']]])
      expect(groups({ models: [], problems: [] }, '', new Set(['away/gone']))[0]?.choices[0]).toMatchObject({ isGone: true, model: { provider: 'away' } })
      expect(list('', [], [{ provider: 'away', problem: 'no connection' }]).at(-1)).toEqual(['away', 'no connection', []])
      expect(list('', [], [{ provider: 'openai', problem: 'replaced' }])[0]).toEqual(['openai', 'replaced', ['gpt-4o', 'gpt-5']])
      expect(list('llama', [], [{ provider: 'away', problem: 'no connection' }])).toEqual([['p', null, ['llama']]])
    })

    it('says the price of an ordinary request, and unknown where none is known', () => {
      const tier = (above: number, input: number) => ({ above, input, cached: null, output: input * 4 })
      expect(price(model('a', { prices: [tier(200_000, 2), tier(0, 1)] }))).toEqual({ input: 1, output: 4 })
      expect(price(model('a'))).toBeNull()
    })

    it('says what a model lacks only where abilities are known', () => {
      expect(lacks(model('a', { abilities: ['images'] }), 'tools')).toBe(true)
      expect(lacks(model('a', { abilities: ['tools'] }), 'tools')).toBe(false)
      expect(lacks(model('a', { abilities: ['tools'] }), 'images')).toBe(true)
      expect(lacks(model('a'), 'reasoning')).toBe(false)
      expect(lacks(model('a', { abilities: ['tools'], abilitiesAssumed: true }), 'images')).toBe(false)
    })

    it.each([
      ['2026-11-30', false],
      ['2027-01-23', false],
      ['2026-11-01', true],
    ])('says that a model retires on %s', (retiresAt, isPast) => {
      expect(retirement(model('a', { retiresAt }), Date.parse('2026-11-25'))).toMatchObject({ isPast })
    })

    it.each(['2027-02-01', 'soon', null, undefined])('says nothing of %s', (retiresAt) => {
      expect(retirement(model('a', retiresAt === undefined ? {} : { retiresAt }), Date.parse('2026-11-25'))).toBeNull()
    })
  })

  describe('how much a model thinks', () => {
    it.each([
      ['8000', '8000'],
      [' 8_000 ', '8000'],
      ['16,384', '16384'],
      ['0', null],
      ['-5', null],
      ['1.5', null],
      ['9999999999', null],
      ['', null],
    ])('%j are %j tokens', (text, tokens) => {
      expect(readTokens(text)).toBe(tokens)
    })

    it('is said in words', () => {
      expect([null, 'off', 'max', '8000'].map(effortWords)).toEqual(['Model default', 'Off', 'Maximum', 'Up to 8,000 tokens'])
    })
  })
})
