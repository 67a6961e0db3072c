/** What servers ask and say while their calls run. */
interface Asked {
  elicitationId: string
  callId: string
  server: string
  message: string
  askedAt: string
}

/** A form that a server wants to have filled in while a call of it runs. */
export interface FormItem extends Asked {
  mode: 'form'
  /** JSON Schema of an object with flat fields. */
  schema: Record<string, unknown>
  /** The names of the fields in the server's order. */
  order: string[]
}

/** A page that a server wants opened. */
export interface PageItem extends Asked {
  mode: 'url'
  /** `https`, or `http` on loopback. */
  url: string
  /** Whether the person went there; it goes on until all is done. */
  opened: boolean
}

/** A completion that a server wants of a model. */
export interface SamplingItem extends Asked {
  mode: 'sampling'
  /** Whether it waits for the person, for the model, or for the person who reads the answer. */
  stage: 'requested' | 'asking' | 'answered' | 'failed'
  systemPrompt: string | null
  messages: { role: 'user' | 'assistant'; text: string }[]
  /** Tokens of the longest answer. */
  maxTokens: number
  temperature: number | null
  stopSequences: string[]
  model: { provider: string; model: string }
  /** About how many tokens the model reads. */
  inputTokens: number
  /** What a yes is about; none while nothing waits for one. */
  digest: string | null
  answer?: { text: string; model: string; stopReason: string }
}

export type ElicitationItem = FormItem | PageItem | SamplingItem

/** Whether it waits for the person, and not for a model. */
export function awaitsPerson(asked: ElicitationItem): boolean {
  return asked.mode !== 'sampling' || asked.stage !== 'asking'
}

/** News of a running call. */
export interface CallProgress {
  /** In words; empty where it says nothing. */
  text: string
  /** How far it is, in the units of `total`. */
  value: number
  /** When it is over; none = nobody knows. */
  total: number | null
}
