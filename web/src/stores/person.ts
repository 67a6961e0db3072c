/** Who is signed in, and what the installation says about itself. */
import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { forgetTyped } from '@/browser/storage'
import { address } from '@/wire/base'
import { problemOf, RequestError, setCsrfToken, watchSignIn } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Installation, Me, Right, SignInProvider } from '@/wire/restTypes'
import { useSessions } from './sessions'
import { useWaiting } from './waiting'
import { noteVersion } from './version'

/** How long a server that could not say who is signed in is left alone. */
const ASK_AGAIN_MS = 3_000

export const usePerson = defineStore('person', () => {
  const sessions = useSessions()
  const waiting = useWaiting()
  const me = shallowRef<Me | null>(null)
  const installation = shallowRef<Installation | null>(null)
  const needsSetup = ref(false)
  /** Where people sign in with their company's account; null while the server was not asked as nobody. */
  const signInProviders = shallowRef<SignInProvider[] | null>(null)
  /** The account that a proxy in front of the server names for this browser; null where it names none. */
  const proxyAccount = shallowRef<string | null>(null)
  /** Whoever signed out, or was not let in, comes back only when they ask for it. */
  let entersByProxy = true
  /** May manage people, providers and servers of the team. */
  const isAdmin = computed(() => {
    const user = me.value?.user
    return user?.installationAdmin === true || user?.role === 'owner' || user?.role === 'admin'
  })
  const rights = computed(() => new Set(me.value?.user.rights))
  /** Whether a role of the person gives the right; the server decides, and the page offers only what it allows. */
  const may = (right: Right) => rights.value.has(right)
  /** `me` was asked and answered, with a person or with "nobody". */
  const isKnown = ref(false)
  let timer: ReturnType<typeof setTimeout> | null = null
  let lastId: string | null = null

  function enter(answer: Me): void {
    setCsrfToken(answer.csrfToken)
    if (lastId !== null && lastId !== answer.user.id) forgetLists()
    lastId = answer.user.id
    me.value = answer
    installation.value = answer.installation
    noteVersion(answer.installation.version)
    needsSetup.value = false
    isKnown.value = true
  }

  /** Nothing of them is whoever's who reads next. */
  function forgetLists(): void {
    sessions.reset()
    waiting.reset()
  }

  /** Rejects only when the server could not be asked. */
  async function identify(): Promise<void> {
    try {
      enter(await rest.me())
    } catch (error) {
      if (!(error instanceof RequestError) || error.status !== 401) throw error
      me.value = null
      const problem = problemOf(error)
      installation.value = problem.installation ?? null
      if (installation.value) noteVersion(installation.value.version)
      needsSetup.value = problem.setupNeeded ?? false
      signInProviders.value = problem.signInProviders ?? []
      proxyAccount.value = problem.proxyAccount ?? null
      if (proxyAccount.value !== null && entersByProxy) await enterByProxy()
      isKnown.value = true
    }
  }

  /** Signs in as the account that the proxy names. */
  async function enterByProxy(): Promise<void> {
    entersByProxy = false
    const { signInByProxy } = await import('@/signin/proxy')
    const answer = await signInByProxy()
    if (!answer) return
    entersByProxy = true
    const isAnother = lastId !== null && lastId !== answer.user.id
    enter(answer)
    // Nothing on the page may be left of the person whose account the proxy named before.
    if (isAnother) location.replace(address(''))
  }

  async function signOut(): Promise<void> {
    const leavesTo = me.value?.signOutUrl
    // Afterwards there is no right to delete any more.
    await sessions.told()
    try {
      await rest.signOut()
    } catch (error) {
      // Whoever is out already is where they want to be.
      if (!(error instanceof RequestError) || error.status !== 401) throw error
    }
    forgetTyped()
    forgetLists()
    entersByProxy = false
    me.value = null
    if (leavesTo) location.assign(leavesTo)
  }

  /** The server no longer knows the cookie; the address stays, so that signing in leads back. */
  function lost(): void {
    me.value = null
  }

  /** Asks until the server says who is signed in, for a page that is there already. */
  function identifyLater(): void {
    timer ??= setTimeout(() => {
      timer = null
      if (!isKnown.value) identify().catch(identifyLater)
    }, ASK_AGAIN_MS)
  }

  async function renew(): Promise<boolean> {
    const id = me.value?.user.id
    try {
      await identify()
    } catch {
      return false
    }
    // What one person asked for is not done in the name of another.
    return id !== undefined && id === me.value?.user.id
  }

  watchSignIn({ onSignedOut: lost, renew })

  return { me, isAdmin, may, installation, needsSetup, signInProviders, proxyAccount, isKnown, enter, enterByProxy, identify, identifyLater, signOut, lost }
})
