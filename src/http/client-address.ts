/** Whose address a request counts as: its peer's, or, behind proxies that are trusted by configuration, what they say. */

import { BlockList, isIP } from 'node:net';
import { headerList } from './headers.ts';

export type TrustedProxies = (address: string) => boolean;

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
 * The right-most entry of X-Forwarded-For that is no trusted proxy; every entry left of it is whatever the client liked to write.
 * @returns undefined when that entry is no address: missing, so that a condition on it denies
 */
export function clientAddress(
  peer: string | undefined,
  rawHeaders: readonly string[],
  trusted: TrustedProxies,
): string | undefined {
  if (peer === undefined) return undefined;
  const direct = plainAddress(peer);
  if (!trusted(direct)) return direct;
  let nearest = direct;
  for (const entry of headerList(rawHeaders, 'x-forwarded-for').toReversed()) {
    const address = plainAddress(entry);
    if (isIP(address) === 0) return undefined;
    nearest = address;
    if (!trusted(address)) return address;
  }
  return nearest;
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const version = isIP(address);
  return version === 4 ? 'ipv4' : version === 6 ? 'ipv6' : undefined;
}

/** Without a zone id, and an IPv4-mapped address as the IPv4 address that it is. */
function plainAddress(address: string): string {
  const unzoned = address.replace(/%.*$/s, '');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(unzoned);
  return mapped?.[1] ?? unzoned;
}
