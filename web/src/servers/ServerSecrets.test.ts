// @vitest-environment happy-dom
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { i18n } from '@/locales'
import type { ServerConfig, ServerItem } from '@/wire/restTypes'
import ServerSecrets from './ServerSecrets.vue'

function words(config: ServerConfig): string {
  const item = { name: 'tracker', config, secrets: ['T'] } as unknown as ServerItem
  return mount(ServerSecrets, { props: { item }, global: { plugins: [i18n] } }).text()
}

it('says that nothing refers to a secret only where that can be seen', () => {
  const unused = 'Set, but nothing refers to it.'
  expect(words({ url: 'https://e.test/mcp' })).toContain(unused)
  expect(words({ url: 'https://e.test/mcp', headers: { Authorization: 'Bearer ${secret:T}' } })).not.toContain(unused)
  expect(words({ url: 'https://e.test/mcp?key=••••' })).not.toContain(unused)
})
