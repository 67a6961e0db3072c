import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { i18n } from '@/locales'
import type { Draft } from '@/servers/entry/secrets'
import type { ServerConfig } from '@/wire/restTypes'
import MoreFields from './MoreFields.vue'

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
