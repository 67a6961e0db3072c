import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { guardFocus } from './focusGuard'

const [frame, field, button] = [document.createElement('div'), document.createElement('input'), document.createElement('button')]
const grasped = vi.fn<() => void>()
let stop: () => void

/** The view sets the focus in itself: the window loses it, and nothing else is said. True if it is given back. */
function isGivenBack(): boolean {
  const focus = vi.spyOn(field, 'focus')
  const active = vi.spyOn(document, 'activeElement', 'get').mockReturnValue(frame)
  dispatchEvent(new Event('blur'))
  active.mockRestore()
  vi.runAllTimers()
  const isCalled = focus.mock.calls.length > 0
  focus.mockRestore()
  return isCalled
}

beforeEach(() => {
  vi.useFakeTimers()
  grasped.mockClear()
  document.body.replaceChildren(frame, field, button)
  stop = guardFocus(frame, grasped)
})
afterEach(() => {
  stop()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

it('gives the focus back to a field that is written in, and tells of a view that goes on', () => {
  field.focus()
  expect([isGivenBack(), isGivenBack()]).toEqual([true, true])
  expect(grasped).not.toHaveBeenCalled()
  isGivenBack()
  expect(grasped).toHaveBeenCalledOnce()
})

it('lets the person go into the view', () => {
  button.focus()
  expect(isGivenBack()).toBe(false)
  field.focus()
  field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Tab', bubbles: true }))
  expect(isGivenBack()).toBe(false)
  button.focus()
  field.focus()
  vi.spyOn(frame, 'matches').mockReturnValue(true)
  expect(isGivenBack()).toBe(false)
})

it('hears nothing when it is over', () => {
  field.focus()
  stop()
  expect(isGivenBack()).toBe(false)
})
