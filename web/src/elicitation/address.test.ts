import { expect, test } from 'vitest'
import { addressParts, hasForeignLetters } from './address'

test('the host stands out, and what only looks like one does not', () => {
  const check = (address: string, host: string) => {
    const parts = addressParts(address)
    expect(parts.host).toBe(host)
    expect(parts.before + parts.host + parts.after).toBe(address)
  }
  check('https://a.example/bank.example?x=1#y', 'a.example')
  check('http://127.0.0.1:80/', '127.0.0.1')
  check('http://127.0.0.1:81/', '127.0.0.1:81')
  check('https://bank.example.evil.example/', 'bank.example.evil.example')
  check('no address', '')
})

test('names with letters of other alphabets are told', () => {
  expect(hasForeignLetters('xn--pypal-4ve.example')).toBe(true)
  expect(hasForeignLetters('paypal.example')).toBe(false)
})
