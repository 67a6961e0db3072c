/** What a view of a call's tool needs beside the call. */
export interface ViewedCall {
  /** The address of the view at the tool's server, if the tool has one. */
  view?: string
  /** The result as data, where the tool gave it as that too. */
  structured?: Record<string, unknown>
}
