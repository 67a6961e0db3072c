/** Calls that are tried in a copy of the workspace before anybody decides them. */

/** What a card says of that. */
export type Triable = {
  /** None where nobody asked for it. */
  dryRun?: DryRun
  /** Why it cannot be tried so. */
  noDryRun?: 'remote' | 'network' | 'open_world' | 'no_workspace' | 'no_tool'
}

/** A call that was tried in a copy of the workspace. It is no execution: the call goes on waiting. */
export type DryRun = {
  status: 'running' | 'completed' | 'failed' | 'not_run'
  /** Who asked for it. */
  by: { id: string; name: string }
  /** RFC 3339. */
  since: string
  /** What it runs. */
  digest: string
  /** The beginning of what the tool gave, or why it gave nothing. */
  text?: string
  cutBytes?: number
  exitCode?: number
  durationMs?: number
  preparedMs?: number
  counts?: { created: number; modified: number; deleted: number }
  /** The first of the paths that changed. */
  files?: { path: string; change: 'created' | 'modified' | 'deleted'; diff?: string; why?: 'no_content' | 'binary' | 'too_large' | 'unread' }[]
  /** What it could not see. */
  unseen?: ('more_files' | 'files' | 'attachments' | 'questions' | 'live_process')[]
}
