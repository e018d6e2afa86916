/** IP addresses and CIDR blocks as the server reads them, for "does it match?" while one types. */

interface Address {
  readonly width: 32 | 128;
  readonly bits: bigint;
}

interface Network extends Address {
  readonly prefix: number;
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const PREFIX = /^(?:0|[1-9]\d{0,2})$/;
const GROUPS = 8;
const MAX_LENGTH = 45;
/** `::ffff:0:0/96`: an IPv4 address written as an IPv6 address. */
const MAPPED = 0xffffn;
const V4_BITS = 32n;
const MAPPED_PREFIX = 96;

function ipv4(text: string): bigint | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every((octet) => OCTET.test(octet) && Number(octet) <= 255)) return undefined;
  return octets.reduce((bits, octet) => bits * 256n + BigInt(octet), 0n);
}

/** The 16-bit groups of one side of `::`. The last of an address may be a dotted IPv4 address. */
function groupsOf(text: string, mayBeDotted: boolean): readonly bigint[] | undefined {
  if (text === '') return [];
  const groups: bigint[] = [];
  const pieces = text.split(':');
  for (const [index, piece] of pieces.entries()) {
    const dotted = mayBeDotted && index === pieces.length - 1 ? ipv4(piece) : undefined;
    if (dotted !== undefined) groups.push(dotted >> 16n, dotted & 0xffffn);
    else if (GROUP.test(piece)) groups.push(BigInt(`0x${piece}`));
    else return undefined;
  }
  return groups;
}

function ipv6(text: string): bigint | undefined {
  const gap = text.indexOf('::');
  const head = groupsOf(gap < 0 ? text : text.slice(0, gap), gap < 0);
  const tail = gap < 0 ? [] : groupsOf(text.slice(gap + 2), true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = GROUPS - head.length - tail.length;
  if (gap < 0 ? missing !== 0 || text === '' : missing < 1) return undefined;
  const groups = [...head, ...new Array<bigint>(missing).fill(0n), ...tail];
  return groups.reduce((bits, group) => (bits << 16n) | group, 0n);
}

function rawAddress(text: string): Address | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const isV6 = text.includes(':');
  const bits = isV6 ? ipv6(text) : ipv4(text);
  return bits === undefined ? undefined : { width: isV6 ? 128 : 32, bits };
}

function isMapped({ width, bits }: Address): boolean {
  return width === 128 && bits >> V4_BITS === MAPPED;
}

function unmapped(address: Address): Address {
  return isMapped(address) ? { width: 32, bits: address.bits & 0xffffffffn } : address;
}

function addressOf(text: string): Address | undefined {
  const percent = text.indexOf('%');
  if (percent >= 0 && (percent === text.length - 1 || !text.includes(':'))) return undefined;
  const address = rawAddress(percent < 0 ? text : text.slice(0, percent));
  return address === undefined ? undefined : unmapped(address);
}

function networkOf(text: string): Network | undefined {
  const [written = '', length, ...more] = text.split('/');
  const raw = rawAddress(written);
  if (raw === undefined || more.length > 0 || (length !== undefined && !PREFIX.test(length))) return undefined;
  const whole = length === undefined ? raw.width : Number(length);
  const prefix = isMapped(raw) ? whole - MAPPED_PREFIX : whole;
  const address = unmapped(raw);
  const network = { ...address, prefix };
  return whole > raw.width || prefix < 0 || !contains(network, address) ? undefined : network;
}

function contains({ width, bits, prefix }: Network, address: Address): boolean {
  const hostBits = BigInt(width - prefix);
  return address.width === width && (address.bits >> hostBits) << hostBits === bits;
}

/** Reports whether the server takes the text as an IP address of a client. */
export function isAddress(text: string): boolean {
  return addressOf(text) !== undefined;
}

/**
 * Reports whether the server takes the text as an address or a CIDR block, without host bits, leading zeros or a zone
 * id.
 */
export function isNetwork(text: string): boolean {
  return networkOf(text) !== undefined;
}

/** Returns the first of the networks that the address is in; undefined if it is in none or is no address. */
export function networkWith(networks: readonly string[], text: string): string | undefined {
  const address = addressOf(text);
  if (address === undefined) return undefined;
  return networks.find((written) => {
    const network = networkOf(written);
    return network !== undefined && contains(network, address);
  });
}

/**
 * Returns the networks that cover exactly the addresses outside of the given ones, IPv4 first. Texts that are no
 * networks count as none.
 */
export function networksOutside(networks: readonly string[]): readonly string[] {
  const known = networks.flatMap((text) => networkOf(text) ?? []);
  return ([32, 128] as const).flatMap((width) => {
    const own = known.filter((network) => network.width === width);
    return outside({ width, bits: 0n, prefix: 0 }, own).map(textOf);
  });
}

function outside(whole: Network, networks: readonly Network[]): readonly Network[] {
  const { width, bits, prefix } = whole;
  if (networks.some((network) => network.prefix <= prefix && contains(network, whole))) return [];
  const within = networks.filter((network) => contains(whole, network));
  if (within.length === 0) return [whole];
  const half = 1n << BigInt(width - prefix - 1);
  return [bits, bits | half].flatMap((start) => outside({ width, bits: start, prefix: prefix + 1 }, within));
}

function textOf({ width, bits, prefix }: Network): string {
  const [size, count, radix, joint] = width === 32 ? ([8n, 4, 10, '.'] as const) : ([16n, 8, 16, ':'] as const);
  const parts = Array.from({ length: count }, (_, index) =>
    ((bits >> (size * BigInt(count - 1 - index))) & ((1n << size) - 1n)).toString(radix),
  );
  const written = parts.join(joint);
  return `${width === 32 ? written : written.replace(/(?:^0|:0)(?::0)+$/, '::')}/${prefix}`;
}
