/** What a model says that reviewed a call, and what that cost. */
import { money } from '@/locales/format'
import { visibleText } from '@/text/hiddenCharacters'
import type { CallReview } from '@/wire/types'

/** `It only lists files. · $0.00030`; an unknown price is not said. */
export function reviewWords({ reason, costUsd }: CallReview): string {
  const said = visibleText(reason ?? '', { oneLine: true })
  return costUsd === undefined ? said : `${said} · ${money(costUsd)}`
}
