/** The routes. Every page but the frame is a chunk of its own, so that signing in loads little. */
import { createRouter, createWebHistory, type RouteLocationNormalized } from 'vue-router'
import { usePerson } from '@/stores/person'
import { basePath } from '@/wire/base'

/** Pages that a person sees before being known. */
const OPEN_TO_ALL: ReadonlySet<string> = new Set(['welcome', 'sign-in', 'signed-in', 'join'])

export const router = createRouter({
  history: createWebHistory(basePath()),
  routes: [
    { path: '/', redirect: '/s/new' },
    { path: '/welcome', name: 'welcome', component: () => import('@/pages/WelcomePage.vue') },
    { path: '/sign-in', name: 'sign-in', component: () => import('@/pages/SignInPage.vue') },
    { path: '/signed-in', name: 'signed-in', component: () => import('@/pages/SignedInPage.vue') },
    { path: '/join', name: 'join', component: () => import('@/pages/JoinPage.vue') },
    {
      path: '/',
      component: () => import('@/shell/AppFrame.vue'),
      children: [
        { path: 's/new', name: 'new', component: () => import('@/pages/SessionPage.vue') },
        // Another name would be that of a session to make, which only programs give.
        { path: 's/:id(ses_\\w+)', name: 'session', component: () => import('@/pages/SessionPage.vue') },
        { path: 'approvals', name: 'approvals', component: () => import('@/pages/ApprovalsPage.vue') },
        { path: 'servers', name: 'servers', component: () => import('@/pages/ServersPage.vue') },
        { path: 'servers/new', name: 'new-server', component: () => import('@/pages/NewServerPage.vue') },
        { path: 'servers/:name', name: 'server', component: () => import('@/pages/ServerPage.vue') },
        { path: 'connected', name: 'connected', component: () => import('@/pages/ConnectedPage.vue') },
        { path: 'usage', name: 'usage', component: () => import('@/pages/UsagePage.vue') },
        { path: 'settings', redirect: '/settings/profile' },
        { path: 'settings/:section', name: 'settings', component: () => import('@/pages/SettingsPage.vue') },
        { path: 'admin/people', name: 'people', component: () => import('@/pages/SettingsPage.vue') },
        { path: 'admin/tenants', name: 'tenants', component: () => import('@/pages/SettingsPage.vue') },
        { path: 'admin/providers', name: 'providers', component: () => import('@/pages/ProvidersPage.vue') },
        { path: 'admin/rules', name: 'rules', component: () => import('@/pages/RulesPage.vue') },
        { path: 'admin/audit', name: 'audit', component: () => import('@/pages/AuditPage.vue') },
        { path: 'admin/system', name: 'system', component: () => import('@/pages/SystemPage.vue') },
        { path: ':rest(.*)*', name: 'lost', component: () => import('@/pages/LostPage.vue') },
      ],
    },
  ],
})

router.beforeEach(async (to) => {
  const person = usePerson()
  if (!person.isKnown) {
    loadBeside(to)
    try {
      await person.identify()
    } catch {
      // The server does not answer; the page says so, and the session's socket tries again by itself.
      person.identifyLater()
      return true
    }
  }
  const isOpen = OPEN_TO_ALL.has(String(to.name))
  if (person.me || isOpen) return true
  if (person.needsSetup) return { name: 'welcome', hash: to.hash }
  return { name: 'sign-in', query: to.fullPath === '/s/new' ? {} : { to: to.fullPath } }
})

/** Fetches the page while the server is asked who looks; the router fetches it again only if that went wrong. */
function loadBeside(to: RouteLocationNormalized): void {
  for (const record of to.matched) {
    const load: unknown = record.components?.default
    if (typeof load === 'function') Promise.resolve(load()).catch(() => {})
  }
}
