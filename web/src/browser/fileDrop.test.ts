import { beforeEach, expect, it } from 'vitest'
import { guardDrops, refusedFiles } from './fileDrop'

const place = document.createElement('div')
place.innerHTML = '<textarea></textarea><p>text</p>'
document.body.append(place)
guardDrops(place)

beforeEach(() => (refusedFiles.value = 0))

/** Whether the browser is kept from doing what it does by itself. */
function isKept(selector: string, type: string, types: string[]): boolean {
  const event = new Event(type, { bubbles: true, cancelable: true })
  Object.assign(event, { dataTransfer: { types, dropEffect: 'copy' }, clipboardData: { types } })
  place.querySelector(selector)?.dispatchEvent(event)
  return event.defaultPrevented
}

it.each<[string, string, string[], boolean]>([
  ['p', 'drop', ['Files'], true],
  ['p', 'dragover', ['Files'], true],
  ['textarea', 'drop', ['Files'], true],
  ['p', 'drop', ['text/uri-list', 'text/plain'], true],
  ['textarea', 'drop', ['text/plain'], false],
  ['textarea', 'paste', ['Files'], true],
  ['textarea', 'paste', ['text/plain', 'Files'], false],
  ['textarea', 'paste', ['text/plain'], false],
])('on %s, %s of %j is kept: %s', (selector, type, types, kept) => {
  expect(isKept(selector, type, types)).toBe(kept)
})

it('counts files that cannot be taken, once they are let go', () => {
  isKept('p', 'dragover', ['Files'])
  expect(refusedFiles.value).toBe(0)
  isKept('p', 'drop', ['Files'])
  isKept('textarea', 'paste', ['Files'])
  isKept('p', 'drop', ['text/uri-list'])
  expect(refusedFiles.value).toBe(2)
})
