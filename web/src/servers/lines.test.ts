import { expect, it } from 'vitest'
import { fromPairs, lines, pairs } from './lines'

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
