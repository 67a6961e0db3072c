import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { keepComposingKeys } from './composing'

const SOURCE = path.resolve(import.meta.dirname, '..')
let stop: () => void

beforeEach(() => {
  stop = keepComposingKeys()
})
afterEach(() => {
  stop()
  document.body.replaceChildren()
})

/** What handlers at the field, around it and of the whole page hear of a key, and whether its default was prevented. */
function heard(init: KeyboardEventInit): { by: string[]; isPrevented: boolean } {
  const [form, field] = [document.createElement('form'), document.createElement('input')]
  form.append(field)
  document.body.append(form)
  const by: string[] = []
  const places = { field, form, page: document }
  const off = Object.entries(places).map(([name, place]) => {
    const hear = () => by.push(name)
    place.addEventListener('keydown', hear)
    return () => place.removeEventListener('keydown', hear)
  })
  const event = new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...init })
  field.dispatchEvent(event)
  off.forEach((remove) => remove())
  return { by, isPrevented: event.defaultPrevented }
}

describe('keys of an input method', () => {
  it.each(['Enter', 'Escape', 'Tab', 'ArrowDown', ' ', 'a'])('%s is heard by nobody while a word is written', (key) => {
    for (const how of [{ isComposing: true }, { keyCode: 229 }, { isComposing: true, keyCode: 229 }]) {
      expect(heard({ key, ...how }), JSON.stringify(how)).toEqual({ by: [], isPrevented: false })
    }
  })

  it.each(['Enter', 'Escape', 'Tab', 'ArrowDown', ' ', 'a'])('%s is heard by everybody otherwise', (key) => {
    expect(heard({ key, keyCode: 13 }).by).toEqual(['field', 'form', 'page'])
  })

  it('are told apart in one place, which the page begins with', () => {
    const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    const written = files.filter((file) => /\.(ts|vue)$/.test(file) && !/\.test\.ts$|^browser\/composing\.ts$/.test(file))
    const text = (file: string) => readFileSync(path.join(SOURCE, file), 'utf8')
    expect(written.filter((file) => /\bisComposing\b|\.keyCode\b/.test(text(file)))).toEqual([])
    const first = /addEventListener\('key\w+',[^)]*(true|capture)/
    expect(written.filter((file) => first.test(text(file)) && /\bwindow\.addEventListener/.test(text(file)))).toEqual([])
    expect(text('main.ts')).toContain('keepComposingKeys()')
  })
})
