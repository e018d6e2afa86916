/** Whose address a request counts as: its peer's, or, behind proxies that are trusted by configuration, what they say. */

import { BlockList, isIP } from 'node:net';
import { headerList } from './headers.ts';

export type TrustedProxies = (address: string) => boolean;

/** Where a request came from. */
export interface Source {
  /** The client's address; undefined = missing: a condition on it then holds in a deny policy and not in an allow policy. */
  readonly address: string | undefined;
  /**
   * What failed logins are counted under: the address, or, where a peer that is not trusted forwards, the peer and the address that it
   * names. Never an argument for an allow. Undefined = only the account counts.
   */
  readonly throttledAs: string | undefined;
  /** The peer that sent X-Forwarded-For without being trusted; undefined = none did. */
  readonly untrustedForwarder: string | undefined;
}

/** Entries of X-Forwarded-For that are looked at, from the right. A client behind a proxy writes as many as it likes. */
const MAX_HOPS = 32;

/**
 * @param entries addresses and CIDR blocks, already validated by the configuration
 * @throws Error for text that is neither
 */
export function trustProxies(entries: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const entry of entries) {
    const [network = '', bits] = entry.split('/');
    const family = familyOf(network);
    if (family === undefined) throw new Error(`not an address or CIDR block: ${entry}`);
    if (bits === undefined) list.addAddress(network, family);
    else list.addSubnet(network, Number(bits), family);
  }
  return (address) => {
    const family = familyOf(address);
    return family !== undefined && list.check(address, family);
  };
}

/**
 * Finds the source of a request. Without X-Forwarded-For the address is the peer's. With it, from a trusted peer, the address is the
 * right-most entry that is no trusted proxy; each entry left of it is the client's word. With it, from any other peer, the address is
 * missing: the peer is a proxy that the configuration does not name, whose own address says nothing about the client, or a client that
 * pretends.
 */
export function sourceOf(peer: string | undefined, rawHeaders: readonly string[], trusted: TrustedProxies): Source {
  if (peer === undefined) return { address: undefined, throttledAs: undefined, untrustedForwarder: undefined };
  const direct = plainAddress(peer);
  const forwarded = headerList(rawHeaders, 'x-forwarded-for');
  if (forwarded.length === 0) return { address: direct, throttledAs: direct, untrustedForwarder: undefined };
  if (!trusted(direct)) return untrusted(direct, forwarded);
  const address = forwardedAddress(direct, forwarded, trusted);
  return { address, throttledAs: address, untrustedForwarder: undefined };
}

/** A proxy that appends has written the last entry itself, so its clients are told apart by it. */
function untrusted(peer: string, forwarded: readonly string[]): Source {
  const named = plainAddress(forwarded.at(-1) ?? '');
  return {
    address: undefined,
    throttledAs: isIP(named) === 0 ? undefined : `${peer} ${named}`,
    untrustedForwarder: peer,
  };
}

/** @returns undefined if an entry is no address, or if none of the last 32 belongs to a client */
function forwardedAddress(peer: string, forwarded: readonly string[], trusted: TrustedProxies): string | undefined {
  let nearest = peer;
  for (const entry of forwarded.slice(-MAX_HOPS).toReversed()) {
    const address = plainAddress(entry);
    if (isIP(address) === 0) return undefined;
    nearest = address;
    if (!trusted(address)) return address;
  }
  return forwarded.length > MAX_HOPS ? undefined : nearest;
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const version = isIP(address);
  return version === 4 ? 'ipv4' : version === 6 ? 'ipv6' : undefined;
}

/** Without a zone id, and an IPv4-mapped address as the IPv4 address that it is. */
export function plainAddress(address: string): string {
  const unzoned = address.replace(/%.*$/s, '');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(unzoned);
  return mapped?.[1] ?? unzoned;
}
