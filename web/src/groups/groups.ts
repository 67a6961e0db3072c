/** The groups of the team, for lists to choose one from, and for people to join. */
import type { Schemas } from 'sepal-client'
import { shallowRef, type ShallowRef } from 'vue'
import { request } from '@/wire/request'

export type Group = Schemas['GroupItem']

export const door = {
  groups: () => request('get', '/api/groups', {}),
  join: (id: string, person: string) => request('put', '/api/groups/{id}/members/{person}', { path: { id, person } }),
}

/** Empty until they are there, and for those who may not see them. */
export function useGroups(): ShallowRef<readonly Group[]> {
  const groups = shallowRef<readonly Group[]>([])
  door.groups().then(
    ({ items }) => (groups.value = items),
    // Without them everything else can be chosen.
    () => {},
  )
  return groups
}
