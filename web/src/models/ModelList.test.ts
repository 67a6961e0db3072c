import { flushPromises, mount, type VueWrapper } from '@vue/test-utils'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { createMemoryHistory, createRouter } from 'vue-router'
import { i18n } from '@/locales'
import type { Models } from '@/wire/restTypes'
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
    expect(b).toContain('price unknown · cannot see')
    expect(b).toMatch(/Retires on \w+ \d+/)
    expect(b).toContain('Last error: no credit')
    expect(c).toContain('cannot use tools')
    expect(wrapper.text()).toContain('three does not list its models. no connection')
    expect(wrapper.text()).toContain('Holds from the next request on.')
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
    await wrapper.get('[aria-label="Keep on top: c"]').trigger('click')
    expect(names(wrapper)).toEqual(['c', 'Model A', 'Model B'])
    answer.models = () => ({ ...MODELS, models: MODELS.models.slice(0, 2) })
    const later = await render()
    expect(names(later)).toEqual(['c', 'Model A', 'Model B'])
    expect(later.get('.words').attributes('disabled')).toBeDefined()
    expect(later.get('.words').text()).toContain('not listed by its provider now')
  })

  it('asks how much a model thinks, unless it cannot', async () => {
    const wrapper = await render('8000')
    expect((wrapper.get('select').element as HTMLSelectElement).value).toBe('tokens')
    await wrapper.get('select').setValue('high')
    await wrapper.get('select').setValue('')
    await wrapper.get('select').setValue('tokens')
    await wrapper.get('.number').setValue('many')
    await wrapper.get('form').trigger('submit')
    expect(wrapper.get('form').text()).toContain('Write a whole number.')
    await wrapper.get('.number').setValue('12_000')
    await wrapper.get('form').trigger('submit')
    expect(wrapper.emitted('think')).toEqual([['high'], [null], ['12000']])
    expect((await render(null, 'b')).find('select').exists()).toBe(false)
    expect((await render(null, 'nobody knows')).find('select').exists()).toBe(true)
  })
})
