import { describe, expect, it } from 'vitest'
import { changesOneFile, describeCall, localName, oneLineArguments } from './describe'

function check(name: string, args: Record<string, unknown>, expected: string, title?: string): void {
  const { verb, object, target } = describeCall({ name, args, title })
  expect([verb, object, target].filter((part) => part !== undefined && part !== '').join(' ')).toBe(expected)
}

describe('describeCall', () => {
  it.each<[string, Record<string, unknown>, string, string?]>([
    ['write_file', { path: 'CHANGELOG.md', content: 'x' }, 'write CHANGELOG.md'],
    ['files.write_file', { path: 'a.txt', content: '' }, 'write a.txt'],
    ['files__write_file', { file_path: 'a.txt' }, 'write a.txt'],
    ['write_file', { content: 'x' }, 'named write_file'],
    ['write_file', { path: 7 }, 'named Write it', 'Write it'],
    ['edit_file', { path: 'a', old_string: 'x', new_string: 'y' }, 'edit a'],
    ['delete_file', { path: 'a' }, 'delete a'],
    ['move_file', { source: 'a', destination: 'b' }, 'move a b'],
    ['move_file', { source: 'a' }, 'named move_file'],
    ['read_file', { path: 'x' }, 'read x'],
    ['list_files', { path: 'y' }, 'list y'],
    ['list_files', {}, 'listAll'],
    ['list_files', { path: '.' }, 'listAll'],
    ['execute_command', { command: 'ls' }, 'run'],
    ['execute_command', { argv: ['ls'] }, 'named execute_command'],
    ['create_issue', { title: 'x' }, 'named Create an issue', 'Create an issue'],
    ['create_issue', { title: 'x' }, 'named create_issue', '  '],
    ['constructor', {}, 'named constructor'],
  ])('%s %j is %s', check)

  it('takes the name after the prefix of the server', () => {
    expect(localName('a.b.write_file')).toBe('write_file')
    expect(localName('write_file')).toBe('write_file')
  })

  it('knows which calls change one file', () => {
    expect(changesOneFile({ name: 'write_file', args: { path: 'a' } })).toBe(true)
    expect(changesOneFile({ name: 'read_file', args: { path: 'a' } })).toBe(false)
  })

  it('puts the thing itself in one line', () => {
    expect(oneLineArguments({ name: 'execute_command', args: { command: 'ls -l' } })).toBe('ls -l')
    expect(oneLineArguments({ name: 'read_file', args: { path: 'a' } })).toBe('a')
    expect(oneLineArguments({ name: 'search', args: { q: 'x' } })).toBe('{"q":"x"}')
    expect(oneLineArguments({ name: 'now', args: {} })).toBe('')
  })
})
