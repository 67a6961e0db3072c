import { expect, it } from 'vitest'
import { expand, fitting, promptEntries, resourceEntries, variables, wordsOf } from './entries'
import './texts.en.json'

const SERVER = { server: 'lib', description: null, listed: true, problems: [], canComplete: true }

it('lists resources, patterns and prompts with what has to be filled in', () => {
  const resource = { uri: 'demo://note', name: 'note', title: 'The note', description: null, mimeType: null, size: null }
  const template = { uriTemplate: 'demo://{kind}/{+path}', name: 'any', title: null, description: null, mimeType: null }
  const entries = resourceEntries([{ ...SERVER, resources: [resource], templates: [template] }])
  expect(entries.map(({ label, detail, blanks }) => [label, detail, blanks.map(({ name }) => name)])).toEqual([
    ['The note', 'demo://note', []],
    ['any', 'demo://{kind}/{+path}', ['kind', 'path']],
  ])
  const prompt = { name: 'review', title: null, description: 'Looks', arguments: [{ name: 'language', title: null, description: null, required: true }] }
  expect(promptEntries([{ ...SERVER, prompts: [prompt] }])[0]).toMatchObject({ is: { prompt: 'review' }, completes: true, blanks: [{ required: true }] })
  expect(fitting(entries, 'LIB note').map(({ label }) => label)).toEqual(['The note'])
})

it.each([
  ['demo://{id}', { id: 'a b/c' }, 'demo://a%20b%2Fc'],
  ['file:///{+path}', { path: 'a/b c' }, 'file:///a/b%20c'],
  ['x:{a,b}', { a: '1', b: '2' }, 'x:1,2'],
  ['x:{/a,b}', { a: '1', b: '2' }, 'x:/1/2'],
  ['x:y{?q,r}', { q: '1', r: '2' }, 'x:y?q=1&r=2'],
  ['x:y{&q}', { q: '&' }, 'x:y&q=%26'],
  ['x:{a:3}', { a: 'abcdef' }, 'x:abc'],
  ['x:{missing}y', {}, 'x:y'],
])('expands %s', (template, values, expected) => {
  expect(expand(template, values)).toBe(expected)
})

it('names each variable once', () => {
  expect(variables('a{b}{+b}{?c*,d:2}')).toEqual(['b', 'c', 'd'])
})

it('says who speaks only where more than the person does', () => {
  const say = (role: string, text: string) => ({ role, text, attachment: null, resource: null })
  expect(wordsOf({ description: null, messages: [say('user', 'a'), say('user', 'b')] })).toBe('a\n\nb')
  expect(wordsOf({ description: null, messages: [say('user', 'a'), say('assistant', 'b')] })).toBe('I said:\na\n\nThe model said before:\nb')
})
