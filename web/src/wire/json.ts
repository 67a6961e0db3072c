/** Values of JSON whose shape is not known yet. */
import type { JsonObject } from './types'

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function asObject(value: unknown): JsonObject | null {
  return isObject(value) ? value : null
}

export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** Anything larger is a double at the gateway as well. */
const LARGEST_INTEGER = 2 ** 64

/**
 * Whether a number in the value may differ in its last digits from the one that the gateway has. The gateway keeps
 * integers of 64 bits exactly, the parser of the socket rounds those above 2^53, and a rounded one that is sent back would run.
 */
export function hasUnsafeInteger(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= LARGEST_INTEGER
  if (Array.isArray(value)) return value.some(hasUnsafeInteger)
  const object = asObject(value)
  return object !== null && Object.values(object).some(hasUnsafeInteger)
}
