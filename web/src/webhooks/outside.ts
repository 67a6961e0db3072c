/**
 * The requests about being told outside of the page. They stand beside their parts, and not in `rest.ts`, so that
 * they come with the settings and not with every session.
 */
import type { Schemas } from 'sepal-client'
import { reasonOr, request } from '@/wire/request'
import { t } from '@/locales'
import '@/settings/texts.en.json'

export type Webhook = Schemas['WebhookItem']
export type WebhookTest = Schemas['TestWebhookResponse']
export type MailChoice = Schemas['MailChoice']

export const outside = {
  webhooks: () => request('get', '/api/webhooks'),
  /** The secret is in this answer and in no other. */
  addWebhook: (url: string, tellsDecided: boolean) => request('post', '/api/webhooks', { body: { url, tellsDecided } }),
  deleteWebhook: (id: string) => request('delete', '/api/webhooks/{id}', { path: { id } }),
  testWebhook: (id: string) => request('post', '/api/webhooks/{id}/test', { path: { id } }),
  mail: () => request('get', '/api/notifications/mail'),
  setMail: (address: string, isOn: boolean) => request('put', '/api/notifications/mail', { body: { address, isOn } }),
}

/** Why a request was refused, in words. */
export function reasonOf(error: unknown): string {
  return reasonOr(error, t('settings.noAnswer'))
}
