/** The requests of whoever comes by an invitation. They come with their page, and not with every session. */
import { request } from '@/wire/request'

export const door = {
  readInvitation: (secret: string) => request('post', '/api/auth/invitation/read', { body: { secret } }),
  join: (body: { secret: string; name: string; password: string }) => request('post', '/api/auth/invitation', { body }),
}
