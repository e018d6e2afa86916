/** The scheme of a client's connection, which only a proxy knows: this listener itself has no TLS. */

import { plainAddress, type TrustedProxies } from './client-address.ts';
import { headerValue } from './headers.ts';

export type Scheme = 'https' | 'http';

/** Undefined: no trusted proxy says. `unreadable`: one does, and not with exactly one known scheme. */
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
