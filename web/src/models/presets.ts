/** What a new provider can be, with the addresses that its programs use by themselves. */
import type { ProviderKind } from '@/wire/restTypes'

export interface Preset {
  /** Also the proposed id. */
  id: string
  /** The name of a product; the one preset that is none is called by a text of the page. */
  label: string | null
  kind: ProviderKind
  baseUrl?: string
  needsKey: boolean
}

export const PRESETS: readonly Preset[] = [
  { id: 'openai', label: 'OpenAI', kind: 'openai', needsKey: true },
  { id: 'anthropic', label: 'Anthropic', kind: 'anthropic', needsKey: true },
  { id: 'gemini', label: 'Google Gemini', kind: 'gemini', needsKey: true },
  { id: 'ollama', label: 'Ollama', kind: 'openai-compatible', baseUrl: 'http://localhost:11434/v1', needsKey: false },
  { id: 'lm-studio', label: 'LM Studio', kind: 'openai-compatible', baseUrl: 'http://localhost:1234/v1', needsKey: false },
  { id: 'vllm', label: 'vLLM', kind: 'openai-compatible', baseUrl: 'http://localhost:8000/v1', needsKey: false },
  { id: 'llama-cpp', label: 'llama.cpp', kind: 'openai-compatible', baseUrl: 'http://localhost:8080/v1', needsKey: false },
  { id: 'openrouter', label: 'OpenRouter', kind: 'openai-compatible', baseUrl: 'https://openrouter.ai/api/v1', needsKey: true },
  { id: 'other', label: null, kind: 'openai-compatible', needsKey: false },
]

/** `id`, or `id-2`, … where that is taken. */
export function freeId(id: string, taken: readonly string[]): string {
  let free = id
  for (let n = 2; taken.includes(free); n += 1) free = `${id}-${n}`
  return free
}
