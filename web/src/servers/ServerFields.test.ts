// @vitest-environment happy-dom
import { mount } from '@vue/test-utils'
import { expect, it } from 'vitest'
import { defineComponent, h, ref } from 'vue'
import { i18n } from '@/locales'
import { seal, type Draft } from '@/servers/entry/secrets'
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
