/** Text that comes from elsewhere in the page for the message that is being written. Nobody sends it but the person. */

type Taker = (words: string) => void

/** Whoever takes text now; the last one that asked. */
const takers: Taker[] = []

/** Gives text to `taker`, until the answer is called. */
export function takeText(taker: Taker): () => void {
  takers.push(taker)
  return () => void takers.splice(takers.indexOf(taker), 1)
}

/** Whether somebody took it. */
export function giveText(words: string): boolean {
  const taker = takers.at(-1)
  taker?.(words)
  return taker !== undefined
}
