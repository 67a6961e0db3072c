/** An address in three pieces, so that its host stands out; pure. */
export interface AddressParts {
  before: string
  host: string
  after: string
}

/** Of an address that is none, nothing stands out. */
export function addressParts(address: string): AddressParts {
  if (!URL.canParse(address)) return { before: address, host: '', after: '' }
  const { protocol, host } = new URL(address)
  const before = `${protocol}//`
  if (!address.startsWith(before + host)) return { before: address, host: '', after: '' }
  return { before, host, after: address.slice(before.length + host.length) }
}

/** Whether the name is written with letters that can look like others. */
export function hasForeignLetters(host: string): boolean {
  return host.split('.').some((label) => label.startsWith('xn--'))
}
