// Changes a document of decisions in every way, and lets the script of docs/audit.md judge each one:
// node mutations.mjs verify.mjs decisions.json PUBLIC_KEY
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [script, file, publicKey] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'mutations-'))
const { log } = console
const exit = process.exit.bind(process)
let judged = 0
const wrong = []

/** Runs the script in this process, because there are many documents. */
async function isValid(bytes, key) {
  const path = join(folder, 'changed.json')
  writeFileSync(path, bytes)
  process.argv = [process.argv[0], script, path, key]
  judged += 1
  try {
    await import(`${pathToFileURL(script)}?${judged}`)
    return true
  } catch {
    // Whatever ends the script ends it with an error.
    return false
  }
}

async function refuse(what, bytes, key) {
  if (await isValid(bytes, key)) wrong.push(what)
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`
}

const own = generateKeyPairSync('ed25519')
const ownKey = own.publicKey.export({ format: 'jwk' }).x

/** The document as somebody would sign it who has another key. */
function signed(document) {
  const { signature: _, ...rest } = { ...document, key: ownKey }
  const signature = sign(null, Buffer.from(canonical(rest)), own.privateKey).toString('base64url')
  return canonical({ ...rest, signature })
}

/** Every place in a value, with what changes it there. */
function* changes(value, path = []) {
  if (value !== null && typeof value === 'object') {
    for (const name of Object.keys(value)) {
      if (!Array.isArray(value)) yield [[...path, name], (it) => delete it[name], path]
      yield* changes(value[name], [...path, name])
    }
    return
  }
  const name = path.at(-1)
  const other = typeof value === 'string' ? `${value}x` : typeof value === 'number' ? value + 1 : !value
  yield [path, (it) => (it[name] = other), path.slice(0, -1)]
}

process.exit = () => {
  throw new Error('ended')
}
console.log = console.error = () => {}
const bytes = readFileSync(file)
const document = JSON.parse(bytes)
if (!(await isValid(bytes, publicKey))) wrong.push('the document itself')
if (!(await isValid(signed(document), ownKey))) wrong.push('the document with another signature')
await refuse('another key', bytes, ownKey)

// One byte of each class: the name that it belongs to, and what kind of character it is.
const seen = new Map()
let name = ''
for (let place = 0; place < bytes.length; place += 1) {
  const text = String.fromCharCode(bytes[place])
  const named = /"([a-zA-Z]+)":$/.exec(bytes.subarray(Math.max(0, place - 40), place).toString('latin1'))
  if (named) name = named[1]
  const kind = /[a-f]/.test(text) ? 'hex' : /[a-z]/i.test(text) ? 'letter' : /\d/.test(text) ? 'digit' : text
  const times = seen.get(`${name} ${kind}`) ?? 0
  const isLast = place + 1 === bytes.length || bytes[place + 1] === 0x22
  if (times > 2 && !(isLast && times < 6)) continue
  seen.set(`${name} ${kind}`, times + 1)
  for (const mask of [0x01, 0x20, 0x80]) {
    const changed = Buffer.from(bytes)
    changed[place] ^= mask
    await refuse(`byte ${place} (${text}) of ${name} with ${mask}`, changed, publicKey)
  }
  await refuse(`without byte ${place}`, Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + 1)]), publicKey)
}
await refuse('a line more', Buffer.concat([bytes, Buffer.from('\n')]), publicKey)

// What somebody could do who has the key, but not the journal: the chain tells.
const { commits } = document
for (let place = 0; place < commits.length; place += 1) {
  const dropped = commits.toSpliced(place, 1)
  const doubled = commits.toSpliced(place, 0, commits[place])
  const moved = commits.toSpliced(place, 1).toSpliced((place + 1) % commits.length, 0, commits[place])
  for (const [what, list] of Object.entries({ dropped, doubled, moved })) {
    await refuse(`commit ${place} ${what}`, signed({ ...document, commits: list }), ownKey)
  }
}
for (const part of ['commits', 'arguments', 'head', 'through']) {
  for (const [path, change, holder] of changes({ [part]: document[part] })) {
    if (path.length === 1 && part === 'arguments') continue
    const changed = structuredClone(document)
    change(holder.reduce((value, step) => value[step], changed))
    if (part === 'arguments' && path.length === 2 && !(path[1] in changed.arguments)) continue
    await refuse(`${path.join('.')} changed`, signed(changed), ownKey)
  }
}
rmSync(folder, { recursive: true })
for (const what of wrong.slice(0, 20)) log(`valid although wrong: ${what}`)
log(`${judged} documents were judged`)
exit(wrong.length > 0 ? 1 : 0)
