import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Highlighter, MAX_MS } from './highlighter'
import { MAX_HIGHLIGHTED, type Piece } from './kinds'
import { WorkerStandIn } from './testing'

const RUST = { source: 'fn a() {}', language: 'rust' }
const PYTHON = { source: 'return 1', language: 'python' }
const SHELL = { source: 'if true; then :; fi', language: 'bash' }

function setUp(): { highlighter: Highlighter; workers: WorkerStandIn[] } {
  const workers: WorkerStandIn[] = []
  const highlighter = new Highlighter(() => {
    const worker = new WorkerStandIn()
    workers.push(worker)
    return worker.asWorker()
  })
  return { highlighter, workers }
}

function textOf(pieces: Piece[] | null | undefined): string | undefined {
  return pieces?.map(({ text }) => text).join('')
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('the highlighter', () => {
  it('loads its worker for the first block that is worth it', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    highlighter.ask({ source: 'a', language: 'text' }, settle)
    highlighter.ask({ source: 'a'.repeat(MAX_HIGHLIGHTED + 1), language: 'js' }, settle)
    expect(settle.mock.calls).toEqual([[null], [null]])
    expect(workers).toHaveLength(0)
    highlighter.ask(RUST, settle)
    highlighter.ask(PYTHON, settle)
    expect(workers).toHaveLength(1)
  })

  it('works on one block at a time, in order', () => {
    const { highlighter, workers } = setUp()
    const settled: (string | undefined)[] = []
    for (const request of [RUST, PYTHON]) highlighter.ask(request, (pieces) => settled.push(textOf(pieces)))
    expect(workers[0]?.asked).toEqual([])
    workers[0]?.say('ready')
    expect(workers[0]?.asked).toEqual([RUST])
    workers[0]?.answer()
    expect(workers[0]?.asked).toEqual([RUST, PYTHON])
    workers[0]?.answer()
    expect(settled).toEqual([RUST.source, PYTHON.source])
  })

  it('answers at once for what it has worked out before', () => {
    const { highlighter, workers } = setUp()
    highlighter.ask(RUST, () => {})
    workers[0]?.say('ready')
    workers[0]?.answer()
    const settle = vi.fn()
    highlighter.ask({ ...RUST }, settle)
    expect(textOf(settle.mock.calls[0]?.[0])).toBe(RUST.source)
    expect(workers[0]?.asked).toHaveLength(1)
    // The same text in another language is another question.
    highlighter.ask({ ...RUST, language: 'python' }, settle)
    expect(workers[0]?.asked).toHaveLength(2)
  })

  it('remembers no more than its share', () => {
    const { highlighter, workers } = setUp()
    const long = Array.from({ length: 12 }, (_, at) => ({ source: `// ${at} ${'x'.repeat(MAX_HIGHLIGHTED - 10)}`, language: 'rust' }))
    highlighter.ask(RUST, () => {})
    workers[0]?.say('ready')
    workers[0]?.answer()
    for (const request of long) {
      highlighter.ask(request, () => {})
      workers[0]?.answer()
    }
    const before = workers[0]?.asked.length ?? 0
    highlighter.ask(long[11] ?? RUST, () => {})
    expect(workers[0]?.asked).toHaveLength(before)
    highlighter.ask(RUST, () => {})
    expect(workers[0]?.asked).toHaveLength(before + 1)
  })

  it('says nothing to one that took its question back', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    const takeBacks = [RUST, PYTHON].map((request) => highlighter.ask(request, settle))
    workers[0]?.say('ready')
    for (const takeBack of takeBacks) takeBack()
    workers[0]?.answer()
    expect(workers[0]?.asked).toEqual([RUST])
    expect(settle).not.toHaveBeenCalled()
  })

  it('stops a block without end, and goes on with the next in a new worker', () => {
    const { highlighter, workers } = setUp()
    const first = vi.fn()
    const second = vi.fn()
    highlighter.ask(RUST, first)
    highlighter.ask(PYTHON, second)
    // Loading may take as long as the network does.
    vi.advanceTimersByTime(10 * MAX_MS)
    expect(first).not.toHaveBeenCalled()
    workers[0]?.say('ready')
    vi.advanceTimersByTime(MAX_MS)
    expect(first).toHaveBeenCalledExactlyOnceWith(null)
    expect(workers[0]?.isTerminated).toBe(true)
    workers[1]?.say('ready')
    // Too late: what a stopped worker still says is nobody's answer.
    workers[0]?.say({ runs: [8, 1] })
    expect(second).not.toHaveBeenCalled()
    workers[1]?.answer()
    expect(textOf(second.mock.calls[0]?.[0])).toBe(PYTHON.source)
    vi.advanceTimersByTime(10 * MAX_MS)
    expect(workers[1]?.isTerminated).toBe(false)
  })

  it('gives up after the third failure', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    for (const request of [RUST, PYTHON, SHELL, { ...RUST, language: 'c' }]) highlighter.ask(request, settle)
    for (const at of [0, 1, 2]) {
      workers[at]?.say('ready')
      vi.advanceTimersByTime(MAX_MS)
    }
    expect(settle.mock.calls).toEqual([[null], [null], [null], [null]])
    highlighter.ask({ ...RUST, language: 'go' }, settle)
    expect(settle).toHaveBeenCalledTimes(5)
    expect(workers).toHaveLength(3)
  })

  it('leaves all plain when the worker cannot be loaded, and tries again with a later block', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    highlighter.ask(RUST, settle)
    highlighter.ask(PYTHON, settle)
    workers[0]?.failToLoad()
    expect(settle.mock.calls).toEqual([[null], [null]])
    highlighter.ask(SHELL, settle)
    workers[1]?.say('ready')
    workers[1]?.answer()
    expect(textOf(settle.mock.calls[2]?.[0])).toBe(SHELL.source)
  })

  it('keeps the failure from the console', () => {
    const { highlighter, workers } = setUp()
    highlighter.ask(RUST, () => {})
    const event = new Event('error', { cancelable: true })
    workers[0]?.onerror?.(event)
    expect(event.defaultPrevented).toBe(true)
  })

  it('leaves code plain where there are no workers', () => {
    const highlighter = new Highlighter(() => {
      throw new ReferenceError('Worker is not defined')
    })
    const settle = vi.fn()
    for (let at = 0; at < 5; at++) highlighter.ask(RUST, settle)
    expect(settle.mock.calls).toEqual([[null], [null], [null], [null], [null]])
  })

  it('draws nothing that does not cover the text', () => {
    const { highlighter, workers } = setUp()
    const settle = vi.fn()
    highlighter.ask(RUST, settle)
    workers[0]?.say('ready')
    workers[0]?.say({ runs: [2, 2] })
    expect(settle).toHaveBeenCalledExactlyOnceWith(null)
  })
})
