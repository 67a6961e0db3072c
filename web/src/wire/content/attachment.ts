/** What goes with messages and comes with results. */

/** A file with a message; its content is at `/api/sessions/{id}/attachments/{attachment}`. */
export interface Attachment {
  id: string
  name: string
  mediaType: string
  bytes: number
  width?: number | null
  height?: number | null
  /** The resource of an MCP server that it was read from. */
  source?: ResourceSource | null
}

/** Where a resource was read. */
export interface ResourceSource {
  server: string
  uri: string
}

/** A piece of what a tool returned. */
export type ResultBlock = { audience?: 'user' | 'assistant' } & (
  | { type: 'text'; text: string }
  | { type: 'file'; attachment: Attachment; uri?: string; mimeType?: string }
  | { type: 'resource'; uri: string; mimeType?: string; text: string }
  | { type: 'resource_link'; uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number }
)
