import { expect, it } from 'vitest'
import { guardDrops, takeFiles } from './fileDrop'

const place = document.createElement('div')
place.innerHTML = '<textarea></textarea><p>text</p>'
document.body.append(place)
guardDrops(place)

const files = [new File(['x'], 'x.png')]

/** Whether the browser is kept from doing what it does by itself. */
function isKept(selector: string, type: string, types: string[]): boolean {
  const event = new Event(type, { bubbles: true, cancelable: true })
  Object.assign(event, { dataTransfer: { types, files, dropEffect: 'copy' }, clipboardData: { types, files } })
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

it('gives files to whoever takes them, once they are let go', () => {
  const taken: File[][] = []
  const stop = takeFiles((given) => taken.push(given))
  isKept('p', 'dragover', ['Files'])
  expect(taken).toEqual([])
  isKept('p', 'drop', ['Files'])
  isKept('textarea', 'paste', ['Files'])
  isKept('textarea', 'paste', ['text/plain', 'Files'])
  isKept('p', 'drop', ['text/uri-list'])
  expect(taken).toEqual([files, files])
  stop()
  isKept('p', 'drop', ['Files'])
  expect(taken).toHaveLength(2)
})
