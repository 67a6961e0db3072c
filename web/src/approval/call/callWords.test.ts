import { describe, expect, it } from 'vitest'
import type { QueueCall } from '@/wire/types'
import { summaryOf } from './callWords'

describe('summaryOf', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['execute_command', { command: 'npm test', timeoutMs: 5 }, 'npm test'],
    ['execute_command', { command: '\n\nrm -r a\nls\n' }, 'rm -r a … 3 more lines'],
    ['execute_command', { command: 'a\u202Eb' }, 'a⟦U+202E⟧b'],
    ['write_file', { path: 'a', content: 'x\ny\n' }, '2 lines, 4 bytes'],
    ['write_file', { path: 'a', content: 'x', append: true }, '1 line, 1 byte · append: true'],
    ['edit_file', { path: 'a', old_string: 'x', new_string: 'y' }, 'x → y'],
    ['edit_file', { path: 'a', edits: [{ oldText: 'x', newText: 'y' }, { oldText: '1', newText: '2' }] }, 'x → y … 1 more place'],
    ['delete_file', { path: 'a', recursive: true }, 'recursive: true'],
    ['read_file', { path: 'a' }, ''],
    ['create_issue', { body: 'text', title: 'A, b: c' }, 'title: "A, b: c", body: "text"'],
    ['now', {}, ''],
  ])('%s %j: %s', (name, args, expected) => {
    expect(summaryOf({ name, args })).toBe(expected)
  })
})

describe('summaryOf with what is known of the file', () => {
  it.each<[QueueCall['file'], string]>([
    [{ exists: false, bytes: 0, isText: false }, 'new file · 1 line, 1 byte'],
    [{ exists: true, lines: 120, bytes: 840, isText: true }, 'replaces 120 lines · 1 line, 1 byte'],
    [{ exists: true, bytes: 1_500, isText: false }, 'replaces 1.5 kB · 1 line, 1 byte'],
    [{ exists: true, bytes: 999_960, isText: false }, 'replaces 1 MB · 1 line, 1 byte'],
    [{ exists: true, bytes: 12, isText: false }, 'replaces 12 bytes · 1 line, 1 byte'],
  ])('%j: %s', (file, expected) => {
    expect(summaryOf({ name: 'write_file', args: { path: 'a', content: 'x' }, file })).toBe(expected)
  })
})
