/** What a view of a call's tool needs beside the call. */
export interface ViewedCall {
  /** The address of the view at the tool's server, if the tool has one. */
  view?: string
  /** The result as data, where the tool gave it as that too. */
  structured?: Record<string, unknown>
  /** The view that asked for the call; none where the model did. */
  askedBy?: AskingView
}

export interface AskingView {
  /** The call whose view it is. */
  callId: string
  /** The name of its tool. */
  name: string
  /** The page's own id of that showing of the view. */
  viewId: string
  /** The page's own id of the request. */
  requestId: string
}
