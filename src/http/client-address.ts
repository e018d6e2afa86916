/**
 * The client's address and scheme: those of the peer, or those that a trusted proxy forwards. The listener itself has
 * no TLS.
 */

import { BlockList, isIP } from 'node:net';
import { headerList, headerValue } from './headers.ts';

export type TrustedProxies = (address: string) => boolean;

export interface Source {
  /**
   * The client's address. Undefined: missing, so a condition on it holds in a deny policy and does not hold in an allow
   * policy.
   */
  readonly address: string | undefined;
  /**
   * The subject of failed logins: the address, or the peer if it sent X-Forwarded-For and is not trusted. It must never
   * be an argument for an allow. Undefined: failures count for the account only.
   */
  readonly throttledAs: string | undefined;
  /** The untrusted peer that sent X-Forwarded-For; undefined if there is none. */
  readonly untrustedForwarder: string | undefined;
}

/**
 * The server reads at most this number of entries of X-Forwarded-For, from the right. The client controls the entries
 * on the left.
 */
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
 * Returns the source of a request:
 *
 * - Without X-Forwarded-For, the address is the peer's.
 * - With X-Forwarded-For from a trusted peer, the address is the right-most entry that is no trusted proxy. The client
 *   wrote the entries left of it.
 * - With X-Forwarded-For from another peer, the address is missing. The peer is a proxy that the configuration does not
 *   name, or a client that forges the header. Failed logins count for the peer, so that no client can evade their limit.
 */
export function sourceOf(peer: string | undefined, rawHeaders: readonly string[], trusted: TrustedProxies): Source {
  if (peer === undefined) return { address: undefined, throttledAs: undefined, untrustedForwarder: undefined };
  const direct = plainAddress(peer);
  const forwarded = headerList(rawHeaders, 'x-forwarded-for');
  if (forwarded.length === 0) return { address: direct, throttledAs: direct, untrustedForwarder: undefined };
  if (!trusted(direct)) return { address: undefined, throttledAs: direct, untrustedForwarder: direct };
  const address = forwardedAddress(direct, forwarded, trusted);
  return { address, throttledAs: address, untrustedForwarder: undefined };
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

/** Returns the address without a zone id, and an IPv4-mapped address as IPv4. */
function plainAddress(address: string): string {
  const unzoned = address.replace(/%.*$/s, '');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(unzoned);
  return mapped?.[1] ?? unzoned;
}

export type Scheme = 'https' | 'http';

/**
 * The scheme of the client's connection to a proxy. `unreadable`: a trusted proxy sent no single known scheme.
 * Undefined: unknown.
 */
export type ForwardedScheme = Scheme | 'unreadable' | undefined;

/** Returns the X-Forwarded-Proto of a trusted peer; the header of any other peer is ignored. */
export function forwardedScheme(
  peer: string | undefined,
  rawHeaders: readonly string[],
  trusted: TrustedProxies,
): ForwardedScheme {
  const header = headerValue(rawHeaders, 'x-forwarded-proto');
  if (header === undefined || peer === undefined || !trusted(plainAddress(peer))) return undefined;
  const scheme = typeof header === 'string' ? header.toLowerCase() : '';
  return scheme === 'https' || scheme === 'http' ? scheme : 'unreadable';
}
