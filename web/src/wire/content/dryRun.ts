/** Calls that are tried in a copy of the workspace before anybody decides them. */

/** What a card says of that. */
export type Triable = {
  /** None where nobody asked for it. */
  dryRun?: DryRun
  /** Why it cannot be tried so. */
  noDryRun?: 'remote' | 'network' | 'open_world' | 'no_workspace' | 'no_tool'
}

/** A yes that gives the call the result of its dry run, by what names it: the call does not run. */
export type TakesResult = { dryRun?: string }

/** That this was so. */
export type TookResult = { tookResult?: boolean }

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
  /** What names all that came of it, where a yes may take it. */
  result?: string
  /** Why none may. */
  noResult?: 'no_answer' | 'files' | 'attachments' | 'questions' | 'live_process' | 'too_large' | 'changing' | 'store'
}
