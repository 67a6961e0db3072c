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
