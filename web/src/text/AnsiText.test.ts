import { describe, expect, it } from 'vitest'
import { readAnsi } from './AnsiText.vue'

describe('readAnsi', () => {
  const ESC = '\u001b['

  it.each([
    ['plain', [['plain:']]],
    [`${ESC}31mred${ESC}0m x`, [['red:ansi-red', ' x:']]],
    [`${ESC}1;92mok\nstill${ESC}m`, [['ok:ansi-green,ansi-bold'], ['still:ansi-green,ansi-bold']]],
    [`${ESC}38;5;196mr${ESC}38;2;10;200;10mg${ESC}48;5;1mb`, [['r:ansi-red', 'g:ansi-green', 'b:ansi-green']]],
    [`${ESC}8mseen${ESC}0m${ESC}2Kx`, [['seen:', 'x:']]],
    ['10%\r20%\r\nend', [['10%:'], ['20%:'], ['end:']]],
    [`${ESC}30;40mink`, [['ink:']]],
  ])('%j', (text, expected) => {
    expect(readAnsi(text).map((line) => line.map((run) => `${run.text}:${run.classes.join()}`))).toEqual(expected)
  })

  it('shows what a terminal would take as a command', () => {
    expect(readAnsi('\u001b]0;title\u0007x')[0]?.[0]?.text).toBe('\u001b]0;title\u0007x')
  })
})
