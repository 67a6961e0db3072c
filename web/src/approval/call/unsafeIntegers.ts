/**
 * Whole numbers that JavaScript cannot hold. The gateway keeps integers of 64 bits exactly, the parser of the socket
 * rounds those above 2^53, and a rounded one that is sent back would run. Anything larger is a double there as well.
 */
import { asObject } from '@/wire/json'

const LARGEST_INTEGER = 2 ** 64

/** Whether a number in the value may differ in its last digits from the one that the gateway has. */
export function hasUnsafeInteger(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= LARGEST_INTEGER
  if (Array.isArray(value)) return value.some(hasUnsafeInteger)
  const object = asObject(value)
  return object !== null && Object.values(object).some(hasUnsafeInteger)
}
