/** Records of the audit in words. */
import { t } from '@/locales'
import type { AuditRecord } from '@/wire/restTypes'
import './texts.en.json'

type Json = Record<string, unknown>

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Json)[name] : undefined
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** Who did it: a person's name, or what else it was. */
export function actorOf(item: AuditRecord): string {
  if (item.person) return item.person.name ?? item.person.id
  const by = member(item.record, 'by')
  const kind = text(member(by, 'kind'))
  const name = text(member(by, 'name')) || text(member(by, 'model'))
  if (kind === 'rule' && name) return t('audit.byRule', { name })
  return ['gateway', 'operator', 'directory', 'stranger', 'rule', 'reviewer', 'expiry', 'system'].includes(kind) ? t(`audit.by.${kind}`) : t('audit.by.system')
}

/** What it was done to: a tool of a server, or a thing by its id. */
export function subjectOf(item: AuditRecord): string {
  const call = member(item.record, 'call')
  const server = text(member(call, 'server'))
  const tool = text(member(call, 'tool'))
  if (tool) return server ? `${server}/${tool}` : tool
  const name = text(member(member(item.record, 'details'), 'name'))
  return name || text(member(member(item.record, 'on'), 'id'))
}

/** What came of it, if the record says so. */
export function verdictOf(item: AuditRecord): string {
  return text(member(item.record, 'verdict')) || text(member(item.record, 'status'))
}

/** The whole record, for those who want to check it. */
export function detailsOf(item: AuditRecord): string {
  return JSON.stringify(item.record, null, 2)
}
