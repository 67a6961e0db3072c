import { createPinia, setActivePinia } from 'pinia'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { lastProblem, takeProblem } from '@/signin/outcome'
import { proxyDoor } from '@/signin/proxy'
import { RequestError } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Me } from '@/wire/restTypes'
import { usePerson } from './person'

function me(id: string, signOutUrl?: string): Me {
  return {
    user: { id, name: id, role: 'member', installationAdmin: false, rights: [] },
    tenant: { id: 't', name: 't' },
    csrfToken: 'x',
    installation: { name: 'Sepal', version: '0.1.0' },
    authMode: 'password',
    encrypted: true,
    ...(signOutUrl !== undefined && { signOutUrl }),
  }
}

const nobody = (proxyAccount: string | null) => new RequestError(401, { code: 'unauthorized', proxyAccount })

beforeEach(() => setActivePinia(createPinia()))
afterEach(() => {
  lastProblem.value = ''
  vi.restoreAllMocks()
})

it('comes in once as the account that the proxy names, and not again after signing out', async () => {
  vi.spyOn(rest, 'me').mockRejectedValue(nobody('ana'))
  vi.spyOn(rest, 'signOut').mockResolvedValue(undefined as never)
  const asked = vi.spyOn(proxyDoor, 'enter').mockResolvedValue(me('ana'))
  const person = usePerson()
  await person.identify()
  expect(asked).toHaveBeenCalledTimes(1)
  expect([person.me?.user.id, person.isKnown, person.proxyAccount]).toEqual(['ana', true, 'ana'])

  await person.signOut()
  await person.identify()
  expect(asked).toHaveBeenCalledTimes(1)
  expect(person.me).toBe(null)
  // The sign-in page offers it.
  await person.enterByProxy()
  expect(person.me?.user.id).toBe('ana')
})

it('says why the account of the proxy does not come in, and asks no second time by itself', async () => {
  vi.spyOn(rest, 'me').mockRejectedValue(nobody('ana'))
  const refusal = new RequestError(403, { code: 'not_allowed', reason: 'disabled' })
  const asked = vi.spyOn(proxyDoor, 'enter').mockRejectedValue(refusal)
  const person = usePerson()
  await person.identify()
  await person.identify()
  expect(asked).toHaveBeenCalledTimes(1)
  expect(person.me).toBe(null)
  expect(takeProblem()).toBe('Your access here has ended. Ask an administrator to restore it.')
})

it('asks nothing of a proxy that names nobody', async () => {
  vi.spyOn(rest, 'me').mockRejectedValue(nobody(null))
  const asked = vi.spyOn(proxyDoor, 'enter')
  await usePerson().identify()
  expect(asked).not.toHaveBeenCalled()
})
