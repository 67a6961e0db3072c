import { mount, type VueWrapper } from '@vue/test-utils'
import { afterEach, describe, expect, it } from 'vitest'
import { queueCall } from '@/approval/testing'
import type { QueueCall } from '@/wire/types'
import EditArguments from './EditArguments.vue'
import { fieldsOf, problemOf } from './schema'

let wrapper: VueWrapper

afterEach(() => wrapper?.unmount())

function edit(change: Partial<QueueCall>): void {
  wrapper = mount(EditArguments, { props: { call: queueCall('a', change), heading: 'Write a.md' }, attachTo: document.body })
}

const approve = () => wrapper.get('.ap-button-open')
const field = (key: string) => wrapper.get(`[data-field="${key}"]`)

const SEARCH = {
  name: 'search',
  schema: {
    type: 'object',
    properties: {
      query: { type: 'string', title: 'Words', minLength: 2 },
      limit: { type: 'integer', minimum: 1, maximum: 50 },
      exact: { type: 'boolean' },
      order: { type: 'string', enum: ['new', 'old'] },
    },
    required: ['query'],
  },
  args: { query: 'abc', limit: 5 },
}

describe('EditArguments', () => {
  it('is a form for a flat schema, and sends only what was changed differently', async () => {
    edit(SEARCH)
    expect(wrapper.findAll('[data-field]')).toHaveLength(4)
    expect(wrapper.text()).toContain('Nothing changed yet.')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toBeUndefined()
    await field('limit').setValue('7')
    await field('exact').setValue('true')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toEqual([[{ args: { query: 'abc', limit: 7, exact: true } }]])
  })

  it('never sends a number that was rounded on its way, nor one that would be', async () => {
    // As the parser of the socket gives it.
    edit({ ...SEARCH, schema: { type: 'object', properties: { query: { type: 'string' }, id: { type: 'integer' } } }, args: JSON.parse('{"query":"abc","id":9007199254740993}') })
    await field('query').setValue('abcd')
    expect(wrapper.text()).toContain('id is a whole number too large for this page to send exactly.')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toBeUndefined()
    await field('id').setValue('18446744073709551615')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toBeUndefined()
    await field('id').setValue('7')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toEqual([[{ args: { query: 'abcd', id: 7 } }]])
  })

  it('edits as text, and sends as text, what only text holds exactly', async () => {
    edit({ ...SEARCH, args: JSON.parse('{"query":"abc","limit":9007199254740993}'), argsText: '{"query":"abc","limit":9007199254740993}', schema: { type: 'object' } })
    expect((field('').element as HTMLTextAreaElement).value).toBe('{"query":"abc","limit":9007199254740993}')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toBeUndefined()
    // The parser makes the same of both.
    await field('').setValue('{"query":"abc","limit":9007199254740992}')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toEqual([[{ argsText: '{"query":"abc","limit":9007199254740992}' }]])
    await field('').setValue('{"query":"abc","limit":3}')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')?.[1]).toEqual([{ args: { query: 'abc', limit: 3 } }])
  })

  it('names the field that is wrong, and goes there', async () => {
    edit(SEARCH)
    await field('limit').setValue('many')
    expect(approve().text()).toBe('Fix limit')
    expect(wrapper.text()).toContain('limit must be a whole number.')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toBeUndefined()
    expect(document.activeElement).toBe(field('limit').element)
    await field('limit').setValue('99')
    expect(wrapper.text()).toContain('limit must be at most 50.')
  })

  it('shows the original beside the change', async () => {
    edit({})
    await field('content').setValue('one\nthree\n')
    const text = wrapper.get('.edit-changes').text()
    expect(text).toContain('two')
    expect(text).toContain('three')
    expect(text).toContain('1 line added, 1 line removed')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toEqual([[{ args: { path: 'a.md', content: 'one\nthree\n' } }]])
  })

  it('keeps what was not touched to the last byte', async () => {
    edit({ args: { path: 'a.md', content: 'a\r\nb\u200B' } })
    await field('path').setValue('b.md')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toEqual([[{ args: { path: 'b.md', content: 'a\r\nb\u200B' } }]])
  })

  it('is JSON with live checks for the rest', async () => {
    edit({ name: 'x', schema: { type: 'object', properties: { list: { type: 'array', items: { type: 'integer' } } } }, args: { list: [1] } })
    await field('').setValue('{"list": [1,')
    expect(wrapper.text()).toContain('This is not valid JSON.')
    await field('').setValue('{"list": [1, "2"]}')
    expect(approve().text()).toBe('Fix list[1]')
    await field('').setValue('{"list": [1, 2]}')
    await approve().trigger('click')
    expect(wrapper.emitted('approve')).toEqual([[{ args: { list: [1, 2] } }]])
  })
})

describe('fieldsOf', () => {
  it('takes only flat schemas that hold all arguments', () => {
    const flat = { type: 'object', properties: { a: { type: 'string' } } }
    expect(fieldsOf(flat, { a: 'x' })?.map(({ kind }) => kind)).toEqual(['line'])
    expect(fieldsOf(flat, { a: 'x\ny' })?.map(({ kind }) => kind)).toEqual(['long'])
    for (const [schema, args] of [
      [flat, { b: 1 }],
      [flat, { a: 1 }],
      [{}, {}],
      [{ properties: { a: { type: 'array' } } }, {}],
      [{ properties: { a: { type: ['string', 'null'] } } }, {}],
      [{ properties: { a: { type: 'string' } }, oneOf: [] }, {}],
    ] as const) expect(fieldsOf(schema, args)).toBeNull()
  })
})

describe('problemOf', () => {
  it.each([
    [{}, [], 'object '],
    [{ required: ['a'] }, {}, 'required a'],
    [{ properties: { a: { type: 'string' } } }, { a: 1 }, 'type a'],
    [{ properties: { a: { properties: { b: { enum: [1] } } } } }, { a: { b: 2 } }, 'choice a.b'],
    [{ additionalProperties: false }, { a: 1 }, 'unknown a'],
    [{ properties: { a: { maxLength: 1 } } }, { a: '👍👍' }, 'tooLong a'],
    [{ properties: { a: { maxLength: 1 } } }, { a: '👍' }, null],
    [{ properties: { a: { pattern: '(a+)+$' } } }, { a: `${'a'.repeat(40)}!` }, null],
  ])('%j of %j is %s', (schema, args, expected) => {
    const problem = problemOf(schema, args)
    expect(problem && `${problem.code} ${problem.field}`).toBe(expected)
  })
})
