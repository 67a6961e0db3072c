/**
 * The page's end of the highlighter. The worker is loaded when the first block asks, works on one block at a time and
 * is stopped when one takes too long. Whatever fails leaves code as it was, without a word: colours are no loss.
 */
import type { InjectionKey } from 'vue'
import { cut, isWorthAsking, type Answer, type Piece, type Request } from './kinds'

/** One block may take this long, many times of what the longest ordinary one needs on a slow telephone. */
export const MAX_MS = 3_000
/** After so many failures, to load or to end in time, this page asks no more. */
const MAX_FAILURES = 3
/** Blocks that come back into view are not worked out again. In characters of code. */
const MAX_REMEMBERED = 500_000

interface Job extends Request {
  settle: (pieces: Piece[] | null) => void
}

export class Highlighter {
  private worker: Worker | null = null
  private isReady = false
  private running: Job | null = null
  private waiting: Job[] = []
  private timer: ReturnType<typeof setTimeout> | undefined
  private failures = 0
  /** Oldest use first. */
  private readonly remembered = new Map<string, Piece[]>()
  private rememberedLength = 0

  constructor(private readonly startWorker: () => Worker) {}

  /**
   * Calls `settle` once, at once if the answer is known; null means plain.
   * The function returned takes the question back: then it is not called any more.
   */
  ask(request: Request, settle: Job['settle']): () => void {
    const known = this.recall(request)
    if (known !== undefined || !isWorthAsking(request) || this.failures >= MAX_FAILURES) {
      settle(known ?? null)
      return () => {}
    }
    const job: Job = { ...request, settle }
    this.waiting.push(job)
    this.next()
    return () => {
      job.settle = () => {}
      this.waiting = this.waiting.filter((other) => other !== job)
    }
  }

  private next(): void {
    if (this.worker === null) this.start()
    if (!this.isReady || this.running !== null) return
    this.running = this.waiting.shift() ?? null
    if (this.running === null) return
    const { source, language } = this.running
    this.worker?.postMessage({ source, language } satisfies Request)
    this.timer = setTimeout(() => this.fail(), MAX_MS)
  }

  private start(): void {
    let worker: Worker
    try {
      worker = this.startWorker()
    } catch {
      return this.fail()
    }
    this.worker = worker
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (worker === this.worker) this.take(data)
    }
    worker.onerror = (event) => {
      event.preventDefault()
      if (worker === this.worker) this.fail()
    }
  }

  private take(answer: Answer): void {
    if (answer === 'ready') this.isReady = true
    else this.settle(answer.runs)
    this.next()
  }

  private settle(runs: number[] | null): void {
    clearTimeout(this.timer)
    const job = this.running
    this.running = null
    if (job === null) return
    const pieces = cut(job.source, runs)
    if (pieces !== null) this.remember(job, pieces)
    job.settle(pieces)
  }

  /** One that could not load answers all; one that did not end answers for the block it was at, and the rest goes on. */
  private fail(): void {
    const hadLoaded = this.isReady
    this.worker?.terminate()
    this.worker = null
    this.isReady = false
    this.failures += 1
    this.settle(null)
    if (hadLoaded && this.failures < MAX_FAILURES) {
      if (this.waiting.length > 0) this.next()
      return
    }
    const given = this.waiting
    this.waiting = []
    for (const job of given) job.settle(null)
  }

  private remember(request: Request, pieces: Piece[]): void {
    // Two blocks of the same text may have waited.
    if (this.recall(request) !== undefined) return
    this.remembered.set(keyOf(request), pieces)
    this.rememberedLength += request.source.length
    for (const [key, oldest] of this.remembered) {
      if (this.rememberedLength <= MAX_REMEMBERED) break
      this.remembered.delete(key)
      this.rememberedLength -= lengthOf(oldest)
    }
  }

  private recall(request: Request): Piece[] | undefined {
    const key = keyOf(request)
    const known = this.remembered.get(key)
    if (known === undefined) return undefined
    this.remembered.delete(key)
    this.remembered.set(key, known)
    return known
  }
}

function keyOf({ source, language }: Request): string {
  return `${language}\n${source}`
}

function lengthOf(pieces: Piece[]): number {
  return pieces.reduce((sum, { text }) => sum + text.length, 0)
}

/** Tests bring their own. */
export const HIGHLIGHTER: InjectionKey<Highlighter> = Symbol('highlighter')

export const pageHighlighter = new Highlighter(() => new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' }))
