/**
 * IP addresses and networks, parsed strictly. An IPv4-mapped IPv6 address is its IPv4 address, and a network inside
 * `::ffff:0:0/96` is its IPv4 network. An IPv4 address is in no other IPv6 network, `::/0` included.
 */

/** 128 bits as four unsigned 32-bit words, the highest first. An IPv4 address is in `a`, the rest is 0. */
export interface Address {
  readonly family: 4 | 6;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: number;
}

export interface Network extends Address {
  readonly maskA: number;
  readonly maskB: number;
  readonly maskC: number;
  readonly maskD: number;
}

/** Longest text that can be an address: `xxxx:xxxx:xxxx:xxxx:xxxx:xxxx:255.255.255.255`. */
const MAX_ADDRESS_LENGTH = 45;

/**
 * Four octets without leading zeros (RFC 6943, section 3.1.1: the looser forms are read differently by different
 * programs).
 */
function parseIPv4(text: string): number | undefined {
  let value = 0;
  let octet = 0;
  let digits = 0;
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 48 && code <= 57) {
      if (digits > 0 && octet === 0) return undefined;
      octet = octet * 10 + code - 48;
      digits++;
      if (octet > 255) return undefined;
    } else if (code === 46 && digits > 0) {
      value = value * 256 + octet;
      octet = 0;
      digits = 0;
      dots++;
    } else return undefined;
  }
  return dots === 3 && digits > 0 ? value * 256 + octet : undefined;
}

const GROUP = /^[0-9a-fA-F]{1,4}$/;

/** Returns the 16-bit groups of one side of `::`. The last one may be a dotted IPv4 address if `dotted` is true. */
function parseGroups(text: string, dotted: boolean): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  const pieces = text.split(':');
  for (const [index, piece] of pieces.entries()) {
    if (GROUP.test(piece)) {
      groups.push(Number.parseInt(piece, 16));
      continue;
    }
    const v4 = dotted && index === pieces.length - 1 ? parseIPv4(piece) : undefined;
    if (v4 === undefined) return undefined;
    groups.push(Math.floor(v4 / 65536), v4 % 65536);
  }
  return groups;
}

/** The eight groups of an IPv6 address (RFC 4291, section 2.2). */
function parseIPv6(text: string): readonly number[] | undefined {
  const gap = text.indexOf('::');
  if (gap < 0) {
    const groups = parseGroups(text, true);
    return groups?.length === 8 ? groups : undefined;
  }
  const head = parseGroups(text.slice(0, gap), false);
  const tail = parseGroups(text.slice(gap + 2), true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  return missing < 1 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function word(groups: readonly number[], index: number): number {
  return (groups[index] ?? 0) * 65536 + (groups[index + 1] ?? 0);
}

const MAPPED_PREFIX = 0xffff;

function isMapped(address: Address): boolean {
  return address.family === 6 && address.a === 0 && address.b === 0 && address.c === MAPPED_PREFIX;
}

function fromIPv4(value: number): Address {
  return { family: 4, a: value, b: 0, c: 0, d: 0 };
}

/** Reads an address as written, without the mapping to IPv4. */
function parseRaw(text: string): Address | undefined {
  if (text.length > MAX_ADDRESS_LENGTH) return undefined;
  if (text.indexOf(':') < 0) {
    const v4 = parseIPv4(text);
    return v4 === undefined ? undefined : fromIPv4(v4);
  }
  const groups = parseIPv6(text);
  return groups && { family: 6, a: word(groups, 0), b: word(groups, 2), c: word(groups, 4), d: word(groups, 6) };
}

/**
 * Parses a client's address and cuts off a zone id (RFC 4007, `%eth0`). Returns undefined for any other text, which
 * then counts as missing.
 */
export function parseAddress(text: string): Address | undefined {
  const percent = text.indexOf('%');
  if (percent >= 0 && (percent === text.length - 1 || text.indexOf(':') < 0)) return undefined;
  const address = parseRaw(percent < 0 ? text : text.slice(0, percent));
  return address !== undefined && isMapped(address) ? fromIPv4(address.d) : address;
}

const PREFIX_LENGTH = /^(?:0|[1-9][0-9]{0,2})$/;

/** Returns the mask of one word if `bits` of it and of the later words are in the prefix. */
function mask(bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? 0xffffffff : (0xffffffff << (32 - bits)) >>> 0;
}

function network(address: Address, bits: number): Network | undefined {
  const masks = { maskA: mask(bits), maskB: mask(bits - 32), maskC: mask(bits - 64), maskD: mask(bits - 96) };
  const built: Network = { ...address, ...masks };
  return inNetwork(address, built) ? built : undefined;
}

/**
 * Parses a CIDR block (RFC 4632, RFC 4291 section 2.3) or a single address of a condition. Host bits, leading zeros and
 * zone ids are rejected: each indicates that the author meant something else.
 */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf('/');
  const address = parseRaw(slash < 0 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  const width = address.family === 4 ? 32 : 128;
  const lengthText = slash < 0 ? String(width) : text.slice(slash + 1);
  if (!PREFIX_LENGTH.test(lengthText)) return undefined;
  const bits = Number(lengthText);
  if (bits > width) return undefined;
  // A prefix shorter than /96 would have host bits, because the 16 ones of the mapped range are in them.
  if (isMapped(address)) return bits < 96 ? undefined : network(fromIPv4(address.d), bits - 96);
  return network(address, bits);
}

export function inNetwork(address: Address, net: Network): boolean {
  return (
    address.family === net.family &&
    (address.a & net.maskA) >>> 0 === net.a &&
    (address.b & net.maskB) >>> 0 === net.b &&
    (address.c & net.maskC) >>> 0 === net.c &&
    (address.d & net.maskD) >>> 0 === net.d
  );
}

export function isLoopbackAddress(text: string): boolean {
  const address = parseAddress(text);
  if (address === undefined) return false;
  const { family, a, b, c, d } = address;
  return family === 4 ? a >>> 24 === 127 : a === 0 && b === 0 && c === 0 && d === 1;
}

const WORD = 32n;
/** The position of the first IPv6 address: all IPv4 addresses come before it. */
export const FIRST_IPV6 = 1n << WORD;
/** The position after the last address. */
export const LAST_POSITION = FIRST_IPV6 + (1n << 128n);

/** Returns the position of an address in one order of all addresses. */
export function addressPosition({ family, a, b, c, d }: Address): bigint {
  if (family === 4) return BigInt(a);
  return FIRST_IPV6 + ((((((BigInt(a) << WORD) | BigInt(b)) << WORD) | BigInt(c)) << WORD) | BigInt(d));
}

/** Returns the position of a network's first address and the position after its last; empty for any other text. */
export function networkBorders(text: string): readonly bigint[] {
  const net = parseNetwork(text);
  if (net === undefined) return [];
  const { family, maskA, maskB, maskC, maskD } = net;
  const first = addressPosition(net);
  const mask = addressPosition({ family, a: maskA, b: maskB, c: maskC, d: maskD });
  const last = family === 4 ? FIRST_IPV6 - mask : LAST_POSITION - mask;
  return [first, first + last];
}

/**
 * Returns the network that counts as one client, because an IPv6 host can use its whole /64.
 * @returns undefined for a text that is no address
 */
export function networkOf(address = ''): string | undefined {
  const parsed = parseAddress(address);
  return parsed && (parsed.family === 4 ? `4:${parsed.a}` : `6:${parsed.a}:${parsed.b}`);
}

/** Writes the address at a position. */
export function addressAt(position: bigint): string {
  const value = position < FIRST_IPV6 ? position : position - FIRST_IPV6;
  const groupAt = (index: number, bits: number) =>
    Number((value >> BigInt(index * bits)) & ((1n << BigInt(bits)) - 1n));
  if (position < FIRST_IPV6) return [3, 2, 1, 0].map((index) => groupAt(index, 8)).join('.');
  const groups = [7, 6, 5, 4, 3, 2, 1, 0].map((index) => groupAt(index, 16).toString(16)).join(':');
  return groups.replace(/(?:^|:)0(?::0)+(?:$|:)/, '::');
}
