/** What a new provider can be, with the addresses that its programs use by themselves. */
import type { LocalServer, ProviderKind } from '@/wire/restTypes'

export interface Preset {
  /** Also the proposed id. */
  id: string
  /** The name of a product; the one preset that is none is called by a text of the page. */
  label: string | null
  kind: ProviderKind
  /** What stands in `<>` is to be filled in. */
  baseUrl?: string
  needsKey: boolean
  /** Where its keys are made. */
  keysAt?: string
  /** How its keys begin, where no other provider's do. */
  keyPrefixes?: readonly string[]
  /** There is something to watch for: `providers.hint.<id>`. */
  hasHint?: true
}

const COMPATIBLE = 'openai-compatible'

export const PRESETS: readonly Preset[] = [
  { id: 'openai', label: 'OpenAI', kind: 'openai', needsKey: true, keysAt: 'https://platform.openai.com/api-keys', keyPrefixes: ['sk-proj-', 'sk-svcacct-'] },
  { id: 'anthropic', label: 'Anthropic', kind: 'anthropic', needsKey: true, keysAt: 'https://console.anthropic.com/settings/keys', keyPrefixes: ['sk-ant-'] },
  { id: 'gemini', label: 'Google Gemini', kind: 'gemini', needsKey: true, keysAt: 'https://aistudio.google.com/apikey', keyPrefixes: ['AIza'] },
  { id: 'ollama', label: 'Ollama', kind: COMPATIBLE, baseUrl: 'http://localhost:11434/v1', needsKey: false, hasHint: true },
  { id: 'lm-studio', label: 'LM Studio', kind: COMPATIBLE, baseUrl: 'http://localhost:1234/v1', needsKey: false, hasHint: true },
  { id: 'vllm', label: 'vLLM', kind: COMPATIBLE, baseUrl: 'http://localhost:8000/v1', needsKey: false, hasHint: true },
  { id: 'llama-cpp', label: 'llama.cpp', kind: COMPATIBLE, baseUrl: 'http://localhost:8080/v1', needsKey: false, hasHint: true },
  { id: 'openrouter', label: 'OpenRouter', kind: COMPATIBLE, baseUrl: 'https://openrouter.ai/api/v1', needsKey: true, keysAt: 'https://openrouter.ai/settings/keys', keyPrefixes: ['sk-or-'] },
  { id: 'groq', label: 'Groq', kind: COMPATIBLE, baseUrl: 'https://api.groq.com/openai/v1', needsKey: true, keysAt: 'https://console.groq.com/keys', keyPrefixes: ['gsk_'] },
  { id: 'mistral', label: 'Mistral', kind: COMPATIBLE, baseUrl: 'https://api.mistral.ai/v1', needsKey: true, keysAt: 'https://console.mistral.ai/api-keys' },
  { id: 'deepseek', label: 'DeepSeek', kind: COMPATIBLE, baseUrl: 'https://api.deepseek.com/v1', needsKey: true, keysAt: 'https://platform.deepseek.com/api_keys' },
  { id: 'xai', label: 'xAI', kind: COMPATIBLE, baseUrl: 'https://api.x.ai/v1', needsKey: true, keysAt: 'https://console.x.ai/', keyPrefixes: ['xai-'] },
  { id: 'together', label: 'Together', kind: COMPATIBLE, baseUrl: 'https://api.together.xyz/v1', needsKey: true, keysAt: 'https://api.together.ai/settings/api-keys' },
  { id: 'cohere', label: 'Cohere', kind: COMPATIBLE, baseUrl: 'https://api.cohere.ai/compatibility/v1', needsKey: true, keysAt: 'https://dashboard.cohere.com/api-keys' },
  { id: 'azure', label: 'Azure OpenAI', kind: COMPATIBLE, baseUrl: 'https://<resource>.openai.azure.com/openai/v1', needsKey: true, keysAt: 'https://portal.azure.com/', hasHint: true },
  { id: 'bedrock', label: 'Amazon Bedrock', kind: COMPATIBLE, baseUrl: 'https://bedrock-runtime.<region>.amazonaws.com/openai/v1', needsKey: true, keysAt: 'https://console.aws.amazon.com/bedrock/', hasHint: true },
  { id: 'vertex', label: 'Google Vertex AI', kind: COMPATIBLE, baseUrl: 'https://aiplatform.googleapis.com/v1/projects/<project>/locations/global/endpoints/openapi', needsKey: true, keysAt: 'https://console.cloud.google.com/vertex-ai', hasHint: true },
  { id: 'other', label: null, kind: COMPATIBLE, needsKey: false },
]

/** The preset of a model server that was found, with the address at which it answered. */
export function presetOfServer({ name, baseUrl }: LocalServer): Preset {
  const known = PRESETS.find(({ id }) => id === name)
  return { ...(known ?? { id: name, label: name, kind: COMPATIBLE, needsKey: false }), baseUrl }
}

/** The model to try first; one that only embeds texts cannot answer. */
export function firstModel(models: readonly string[]): string {
  return models.find((name) => !/embed|rerank/i.test(name)) ?? models[0] ?? ''
}

/** `id`, or `id-2`, … where that is taken. */
export function freeId(id: string, taken: readonly string[]): string {
  let free = id
  for (let n = 2; taken.includes(free); n += 1) free = `${id}-${n}`
  return free
}

/** Whose key that is; null = its beginning does not say so for certain. */
export function presetOfKey(key: string): Preset | null {
  const trimmed = key.trim()
  return PRESETS.find(({ keyPrefixes }) => keyPrefixes?.some((prefix) => trimmed.startsWith(prefix))) ?? null
}

/** What is still to be filled in of an address: `resource` of `https://<resource>.example`. */
export function blankOf(address: string): string | null {
  return /<([^<>]+)>/.exec(address)?.[1] ?? null
}
