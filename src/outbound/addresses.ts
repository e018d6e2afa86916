/**
 * Addresses that a request to a server of a tenant's choice may reach: those of the public internet. The lists are the
 * IANA special-purpose registries (RFC 6890), read as denial by default: an IPv6 address must be global unicast.
 */

import { type Address, inNetwork, type Network, parseAddress, parseNetwork } from '../decision/address.ts';

function networks(...texts: readonly string[]): readonly Network[] {
  return texts.map((text) => {
    const network = parseNetwork(text);
    if (network === undefined) throw new Error(`${text} is not a network`);
    return network;
  });
}

const RESERVED_IPV4 = networks(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  // Multicast, reserved, broadcast.
  '224.0.0.0/3',
  // Azure answers here on each virtual machine.
  '168.63.129.16/32',
);
const GLOBAL_UNICAST = networks('2000::/3');
const RESERVED_IPV6 = networks(
  // Protocol assignments, with Teredo.
  '2001::/23',
  '2001:db8::/32',
  // 6to4: an IPv4 address is inside.
  '2002::/16',
  '3fff::/20',
);
/** NAT64 (RFC 6052): networks without IPv4 reach public IPv4 addresses by it. */
const NAT64 = networks('64:ff9b::/96');

const isIn = (address: Address, list: readonly Network[]): boolean => list.some((net) => inNetwork(address, net));

/** Reports whether an address belongs to the public internet. False for any text that is not an address. */
export function isPublicAddress(text: string): boolean {
  // An IPv4-mapped address is parsed as its IPv4 address. An address with a zone belongs to one link.
  const address = text.includes('%') ? undefined : parseAddress(text);
  if (address === undefined) return false;
  if (address.family === 4) return !isIn(address, RESERVED_IPV4);
  if (isIn(address, NAT64)) return !isIn({ family: 4, a: address.d, b: 0, c: 0, d: 0 }, RESERVED_IPV4);
  return isIn(address, GLOBAL_UNICAST) && !isIn(address, RESERVED_IPV6);
}
