import { afterEach, beforeEach, expect, it } from 'vitest'
import { returnPath, wayBack } from './wayBack'

beforeEach(() => {
  document.head.innerHTML = '<base href="/sepal/">'
})
afterEach(() => {
  document.head.innerHTML = ''
})

it.each([
  ['/servers/new?a=1#x', '/servers/new?a=1#x'],
  ['/s/ses_1', '/s/ses_1'],
  [undefined, '/s/new'],
  [['/a', '/b'], '/s/new'],
  ['', '/s/new'],
  ['//evil.example', '/s/new'],
  ['/\\evil.example', '/s/new'],
  ['https://evil.example', '/s/new'],
  ['javascript:alert(1)', '/s/new'],
])('leads from %j to a page of ours', (wanted, page) => {
  expect(wayBack(wanted)).toEqual({ page })
})

it('leads to what was shared, below the prefix of this server', () => {
  expect(wayBack('/shared/shr_0a')).toEqual({ leave: `${location.origin}/sepal/shared/shr_0a` })
})

it.each(['/shared/../..//evil.example', '/shared//evil.example', '/shared/a/b', '/shared/a?b', '/shared/\\evil.example'])(
  'does not leave the page for %s',
  (wanted) => expect(wayBack(wanted)).toHaveProperty('page'),
)

it.each([
  ['/rules?a=1', '/rules?a=1'],
  ['/shared/shr_0a', '/shared/shr_0a'],
  [undefined, '/s/new'],
  ['//evil.example', '/s/new'],
  ['/\\evil.example', '/s/new'],
  ['/ä', '/s/new'],
  [`/${'x'.repeat(512)}`, '/s/new'],
])('goes round by a provider from %j to %s', (wanted, path) => {
  expect(returnPath(wanted)).toBe(path)
})
