import { expect, it } from 'vitest'
import { fromPairs, fromWords, lines, pairs, toWords } from './lineFormat'

it('reads what it writes', () => {
  const env = { A: '1=2', B: ' x ' }
  expect(pairs(fromPairs(env, '='), '=')).toEqual({ pairs: env, wrong: [] })
  const headers = { Authorization: 'Bearer ${secret:T}' }
  expect(pairs(fromPairs(headers, ':'), ':')).toEqual({ pairs: headers, wrong: [] })
})

it('names the lines that are not understood', () => {
  expect(pairs('A=1\nnothing\n\n=x', '=')).toEqual({ pairs: { A: '1' }, wrong: ['nothing', '=x'] })
  expect(lines('a\n \n b')).toEqual(['a', ' b'])
})

it('writes any argument in one line, and reads the same', () => {
  const words = ['-c', 'print(1)\nprint(2)', '', ' ', '"quoted"', '"half', "it's", 'a "b"', 'a\r\nb']
  expect(toWords(fromWords(words))).toEqual(words)
  expect(fromWords(['-c', 'a\nb', 'plain'])).toBe('-c\n"a\\nb"\nplain')
})
