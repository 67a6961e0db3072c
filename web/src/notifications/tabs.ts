/** Which of the open tabs tells, and whether a person looks at any of them. Web locks end with their tab. */
import { basePath } from '@/wire/base'

/** Two installations on one host have each their own. */
const TELLS = `sepal${basePath()}tells`
const IS_SEEN = `sepal${basePath()}is-seen`

/** Stands in line for telling; gives what leaves it. */
export function standInLine(onFirst: () => void): () => void {
  const left = new AbortController()
  let leave = (): void => {}
  const held = new Promise<void>((resolve) => (leave = resolve))
  navigator.locks
    .request(TELLS, { signal: left.signal }, () => {
      onFirst()
      return held
    })
    .catch(() => {})
  return () => {
    left.abort()
    leave()
  }
}

/** Says to the other tabs while this one is in view; gives what ends it. */
export function sayWhenSeen(): () => void {
  let hide: (() => void) | null = null
  function look(): void {
    const isSeen = document.visibilityState === 'visible'
    if (isSeen === (hide !== null)) return
    if (hide !== null) {
      hide()
      hide = null
      return
    }
    const hidden = new Promise<void>((resolve) => (hide = resolve))
    navigator.locks.request(IS_SEEN, { mode: 'shared' }, () => hidden).catch(() => {})
  }
  look()
  document.addEventListener('visibilitychange', look)
  return () => {
    document.removeEventListener('visibilitychange', look)
    hide?.()
  }
}

export async function isAnySeen(): Promise<boolean> {
  if (document.visibilityState === 'visible') return true
  const { held } = await navigator.locks.query()
  return (held ?? []).some(({ name }) => name === IS_SEEN)
}
