import { describe, expect, it } from 'vitest'
import { readWindows, windowsText } from './contextWindows'

describe('windows of single models', () => {
  it.each([
    ['', {}],
    ['qwen3:8b=40960', { 'qwen3:8b': 40_960 }],
    [' a/b=1_000_000,c=d=2048\ne=1024 ', { 'a/b': 1_000_000, 'c=d': 2_048, e: 1_024 }],
  ])('are read from %j', (text, windows) => {
    expect(readWindows(text)).toEqual({ windows })
    expect(readWindows(windowsText(windows))).toEqual({ windows })
  })

  it.each(['qwen3:8b', '=4096', 'a=', 'a=many', 'a=-1', 'a=1.5'])('are not read from %j', (text) => {
    expect(readWindows(`ok=1024, ${text}`)).toEqual({ wrong: text })
  })
})
