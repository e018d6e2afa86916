/** Opaque tokens: a prefix that says what they are, and 256 random bits. Stored as SHA-256 alone. */

import { hash, randomBytes } from 'node:crypto';
import type { RandomSource } from './api-keys.ts';

/** `prt_`: refresh token. `pst_`: one-time token that sets a password. */
export type OpaqueTokenPrefix = 'prt_' | 'pst_';

export interface OpaqueToken {
  /** The whole token: given out once, then forgotten. */
  readonly text: string;
  /** SHA-256 of the text, 32 bytes. */
  readonly digest: Buffer;
}

/** 32 bytes in base64url without padding. */
const SECRET_BYTES = 32;
const SECRET = /^[0-9A-Za-z_-]{43}$/;

export function opaqueToken(prefix: OpaqueTokenPrefix, secret: Uint8Array): OpaqueToken {
  const text = prefix + Buffer.from(secret).toString('base64url');
  return { text, digest: opaqueDigest(text) };
}

export function makeOpaqueToken(prefix: OpaqueTokenPrefix, random: RandomSource = randomBytes): OpaqueToken {
  return opaqueToken(prefix, random(SECRET_BYTES));
}

/** True for a text of this form; any other cannot have been given out and needs no look-up. */
export function hasOpaqueForm(prefix: OpaqueTokenPrefix, text: string): boolean {
  return text.startsWith(prefix) && SECRET.test(text.slice(prefix.length));
}

export function opaqueDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
