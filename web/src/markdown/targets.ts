/** Where a link of a model may lead. */
const SAFE_TARGET = /^(?:https?:\/\/[^/\s]|mailto:[^\s])/i

export function isSafeTarget(target: string): boolean {
  if (!SAFE_TARGET.test(target)) return false
  try {
    return ['http:', 'https:', 'mailto:'].includes(new URL(target).protocol)
  } catch {
    return false
  }
}
