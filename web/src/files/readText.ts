/** The text of a file of a workspace, as it is now. */
import { door } from './door'

/** Longer files are not compared: both sides stand in the page. */
export const MAX_BYTES = 1024 * 1024

const WORKSPACE = '/workspace/'

export class TooLong extends Error {}

/** The path as the door takes it: below the workspace, each name once. */
export function inWorkspace(path: string): string {
  const below = path.startsWith(WORKSPACE) ? path.slice(WORKSPACE.length) : path
  return below
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')
}

/** Null where it is no text in UTF-8. Throws `TooLong`, and what the request throws. */
export async function readText(session: string, path: string): Promise<string | null> {
  const bytes = await door.head(session, inWorkspace(path), MAX_BYTES + 1)
  if (bytes.length > MAX_BYTES) throw new TooLong()
  try {
    // A mark of the order of bytes is a part of what is there.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}
