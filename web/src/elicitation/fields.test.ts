import { expect, test } from 'vitest'
import { contentOf, draftOf, fieldsOf, problemAt } from './fields'

const schema = {
  type: 'object',
  properties: {
    zip: { type: 'string', title: 'Zip code', maxLength: 5 },
    mail: { type: 'string', format: 'email' },
    age: { type: 'integer', minimum: 18, default: 20 },
    sure: { type: 'boolean', default: true },
    colour: { type: 'string', oneOf: [{ const: 'r', title: 'Red' }, { const: 'b', title: 'Blue' }] },
    old: { type: 'string', enum: ['a', 'b'], enumNames: ['First', 'Second'] },
    tags: { type: 'array', items: { anyOf: [{ const: 't', title: 'Tag' }] }, default: ['t'] },
    apiKey: { type: 'string' },
  },
  required: ['zip'],
}
const order = ['zip', 'mail', 'age', 'sure', 'colour', 'old', 'tags', 'apiKey', 'gone']

test('fields come in the order of the server, with its titles and choices', () => {
  const fields = fieldsOf({ schema, order })
  expect(fields.map(({ kind }) => kind)).toEqual(['text', 'text', 'number', 'boolean', 'one', 'one', 'several', 'text'])
  expect(fields[0]).toMatchObject({ label: 'Zip code', isRequired: true, isSecret: false })
  expect(fields[1]).toMatchObject({ label: 'mail', inputType: 'email', isRequired: false })
  expect(fields[4]?.options).toEqual([{ value: 'r', label: 'Red' }, { value: 'b', label: 'Blue' }])
  expect(fields[5]?.options).toEqual([{ value: 'a', label: 'First' }, { value: 'b', label: 'Second' }])
  expect(fields[7]?.isSecret).toBe(true)
})

test('what nobody filled in is left out, and numbers are numbers', () => {
  const fields = fieldsOf({ schema, order })
  const draft = draftOf(fields)
  expect(contentOf(fields, draft)).toEqual({ age: 20, sure: true, tags: ['t'] })
  expect(contentOf(fields, { ...draft, zip: '12345', age: 'many', colour: 'b', tags: [] })).toEqual({ zip: '12345', age: 'many', sure: true, colour: 'b' })
})

test('a refusal stands at the field that it names', () => {
  const fields = fieldsOf({ schema, order })
  expect(problemAt(fields, '`zip`: too long')).toEqual({ field: 'zip', text: 'too long' })
  expect(problemAt(fields, '`more`: the form has no such field')).toBeNull()
  expect(problemAt(fields, '')).toBeNull()
})
