/** The groups of the team, for lists to choose one from. */
import { shallowRef, type ShallowRef } from 'vue'
import { door, type Group } from './door'

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
