/** Everything that the palette leads to: what is there for everybody, and what the server lists for this person. */
import { computed, shallowRef, type ComputedRef } from 'vue'
import { useRoute, useRouter } from 'vue-router'
import { printSession } from '@/browser/printing'
import { i18n } from '@/locales'
import { useSession } from '@/session/store/session'
import { addressOf, SETTINGS } from '@/settings/sections'
import { theme, type Theme } from '@/stores/appearance'
import { isFindOpen, isImportOpen, isKeysOpen, TABS, toggleTab, toShare } from '@/stores/panels'
import { usePerson } from '@/stores/person'
import { useSessions } from '@/stores/sessions'
import { useWaiting } from '@/stores/waiting'
import { request } from '@/wire/request'
import { rest } from '@/wire/rest'
import type { Model, ServerItem, UsagePerson } from '@/wire/restTypes'
import '@/panel/texts.en.json'
import './texts.en.json'

export type GroupId = 'recent' | 'found' | 'sessions' | 'actions' | 'models' | 'assistants' | 'settings' | 'servers' | 'rules' | 'people'

export interface PaletteEntry {
  id: string
  label: string
  /** Said beside the label, and found as well. */
  description?: string
  /** Found, and not said. */
  words?: string
  icon: string
  keys?: string
  run: () => unknown
}

export interface PaletteGroup {
  id: GroupId
  entries: PaletteEntry[]
}

const PAGES = [
  { to: '/approvals', icon: 'i-lucide-inbox', name: 'inbox.title' },
  { to: '/servers', icon: 'i-lucide-blocks', name: 'servers.title' },
  { to: '/servers/new', icon: 'i-lucide-plus', name: 'palette.addServer' },
  { to: '/admin/providers', icon: 'i-lucide-cpu', name: 'providers.title' },
  { to: '/usage', icon: 'i-lucide-chart-column', name: 'usage.title' },
  { to: '/admin/rules', icon: 'i-lucide-list-checks', name: 'palette.teamRules' },
  { to: '/admin/audit', icon: 'i-lucide-scroll-text', name: 'palette.audit' },
  { to: '/admin/system', icon: 'i-lucide-info', name: 'palette.system' },
] as const
const THEMES: readonly Theme[] = ['light', 'dark', 'system']

export function usePaletteEntries(): { groups: ComputedRef<PaletteGroup[]>; load: () => Promise<void> } {
  const { t } = i18n.global
  const router = useRouter()
  const route = useRoute()
  const session = useSession()
  const sessions = useSessions()
  const person = usePerson()
  const waiting = useWaiting()
  const models = shallowRef<readonly Model[]>([])
  const servers = shallowRef<readonly ServerItem[]>([])
  const assistants = shallowRef<readonly { id: string; name: string; description: string; level: string }[]>([])
  const rules = shallowRef<readonly { id: string; name?: string | null; sentence: string }[]>([])
  const people = shallowRef<readonly UsagePerson[]>([])

  const isInSession = computed(() => route.name === 'session' && session.id !== null)
  const go = (to: string) => () => router.push(to)

  /** A list that cannot be read is left out: the others still lead somewhere. */
  async function load(): Promise<void> {
    await Promise.allSettled([
      rest.models().then((found) => (models.value = found.models)),
      rest.servers().then(({ items }) => (servers.value = items)),
      request('get', '/api/assistants', { query: {} }).then(({ items }) => (assistants.value = items.filter(({ level }) => level !== 'see'))),
      request('get', '/api/rules', {}).then((found) => (rules.value = (found as { rules: typeof rules.value }).rules)),
      person.may('usage.read') && rest.usage({ by: 'person', sort: 'name', limit: 1000 }).then(({ items }) => (people.value = items.flatMap((item) => item.person ?? []))),
    ])
  }

  const ofSession = computed<PaletteEntry[]>(() => {
    const { id } = session
    if (!isInSession.value || id === null) return []
    const item = sessions.items.find((one) => one.id === id)
    return [
      ...(session.isRunning ? [{ id: 'stop', label: t('palette.stop'), icon: 'i-lucide-square', keys: 'Esc Esc', run: () => session.stop() }] : []),
      { id: 'find', label: t('find.open'), icon: 'i-lucide-search', keys: '$mod F', run: () => (isFindOpen.value = true) },
      ...TABS.map((tab) => ({ id: tab, label: tab === 'files' ? t('palette.files') : t('palette.details', { tab: t(`panel.tab.${tab}`) }), icon: tab === 'files' ? 'i-lucide-folder' : 'i-lucide-info', run: () => toggleTab(tab) })),
      ...(item ? [{ id: 'share', label: t('palette.share'), icon: 'i-lucide-share-2', run: () => (toShare.value = item) }] : []),
      { id: 'print', label: t('palette.print'), icon: 'i-lucide-printer', keys: '$mod P', run: () => printSession(id) },
    ]
  })
  const actions = computed<PaletteEntry[]>(() => [
    { id: 'new', label: t('rail.new'), icon: 'i-lucide-plus', run: go('/s/new') },
    ...ofSession.value,
    ...PAGES.map(({ to, icon, name }) => ({ id: to, label: t(name), icon, run: go(to), ...(to === '/approvals' && waiting.calls > 0 ? { description: String(waiting.calls) } : {}) })),
    { id: 'import', label: t('palette.import'), icon: 'i-lucide-upload', run: () => (isImportOpen.value = true) },
    ...THEMES.map((value) => ({ id: `theme-${value}`, label: t(`palette.theme.${value}`), icon: 'i-lucide-settings-2', run: () => (theme.value = value) })),
    { id: 'keys', label: t('keys.title'), icon: 'i-lucide-keyboard', keys: '?', run: () => (isKeysOpen.value = true) },
  ])
  const settings = computed<PaletteEntry[]>(() =>
    SETTINGS.filter(({ isFor }) => isFor(person.me)).map((section) => {
      const words = section.holds.map((one) => t(one)).join(' ')
      return { id: `settings-${section.id}`, label: t('palette.setting', { name: t(section.name) }), words, icon: 'i-lucide-settings-2', run: go(addressOf(section)) }
    }),
  )

  const groups = computed<PaletteGroup[]>(() => [
    {
      id: 'sessions',
      entries: sessions.items.map(({ id, title, tags }) => ({ id, label: title ?? t('session.untitled'), description: tags.join(', '), icon: 'i-lucide-message-square', run: go(`/s/${id}`) })),
    },
    { id: 'actions', entries: actions.value },
    {
      id: 'models',
      // A model is chosen for a session.
      entries: session.ready === null ? [] : models.value.map((model) => ({ id: `model-${model.provider}/${model.id}`, label: model.name || model.id, description: t('palette.useModel', { provider: model.provider }), words: model.id, icon: 'i-lucide-cpu', run: () => session.chooseModel(model) })),
    },
    { id: 'assistants', entries: assistants.value.map(({ id, name, description }) => ({ id: `assistant-${id}`, label: t('palette.startWith', { name }), description, icon: 'i-lucide-bot', run: go(`/s/new?assistant=${id}`) })) },
    { id: 'settings', entries: settings.value },
    { id: 'servers', entries: servers.value.map(({ name }) => ({ id: `server-${name}`, label: name, icon: 'i-lucide-blocks', run: go(`/servers/${name}`) })) },
    { id: 'rules', entries: rules.value.map(({ id, name, sentence }) => ({ id: `rule-${id}`, label: name || sentence, ...(name ? { description: sentence } : {}), icon: 'i-lucide-list-checks', run: go('/settings/rules') })) },
    { id: 'people', entries: people.value.map(({ id, name }) => ({ id: `person-${id}`, label: name ?? id, description: t('palette.usageOf'), icon: 'i-lucide-user', run: go(`/usage?person=${encodeURIComponent(id)}`) })) },
  ])

  return { groups, load }
}
