/**
 * Writes a .br and a .gz beside every text asset, so that the server never compresses while it answers.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const OUT = new URL('../dist/', import.meta.url).pathname
const TEXT = /\.(js|css|svg|webmanifest|json|txt)$/
/** index.html stays plain: the server writes `<base href>` into it. */
const SMALLEST = 256

for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !TEXT.test(entry.name) || entry.parentPath.includes('.vite')) continue
  const path = join(entry.parentPath, entry.name)
  const bytes = readFileSync(path)
  if (bytes.length < SMALLEST) continue
  const brotli = {
    params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  }
  writeFileSync(`${path}.br`, brotliCompressSync(bytes, brotli))
  writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }))
}
