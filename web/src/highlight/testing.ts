/** Stands in for the browser's worker in tests: the same grammars, in this thread, answering when told to. */
import { runsOf } from './grammars'
import type { Answer, Request } from './kinds'

export class WorkerStandIn {
  onmessage: ((event: MessageEvent<Answer>) => void) | null = null
  onerror: ((event: Event) => void) | null = null
  readonly asked: Request[] = []
  isTerminated = false

  /** The form that the highlighter takes; what it does not use is not there. */
  asWorker(): Worker {
    return this as unknown as Worker
  }

  postMessage(request: Request): void {
    this.asked.push(request)
  }

  terminate(): void {
    this.isTerminated = true
  }

  say(answer: Answer): void {
    this.onmessage?.({ data: answer } as MessageEvent<Answer>)
  }

  failToLoad(): void {
    this.onerror?.(new Event('error', { cancelable: true }))
  }

  /** Answers the block it was asked for last. */
  answer(): void {
    const request = this.asked.at(-1)
    this.say({ runs: request === undefined ? null : runsOf(request) })
  }
}

/** Answers everything at once. */
export class QuickWorkerStandIn extends WorkerStandIn {
  override asWorker(): Worker {
    queueMicrotask(() => this.say('ready'))
    return super.asWorker()
  }

  override postMessage(request: Request): void {
    super.postMessage(request)
    queueMicrotask(() => this.say({ runs: runsOf(request) }))
  }
}
