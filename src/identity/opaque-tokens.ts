/**
 * Opaque tokens: a prefix for their kind and 256 random bits. Only their SHA-256 is stored.
 *
 * A used refresh token's successor is not stored: it is derived under `secret-key` from the token and a nonce in its
 * row. A client that lost the answer gets the same successor again. Neither the database alone nor an old token reveals
 * a successor.
 */

import { createHmac, hash, randomBytes } from 'node:crypto';
import type { RandomSource } from './api-keys.ts';
import { deriveKey } from './seal.ts';

/** `prt_`: refresh token. `pst_`: one-time token that sets a password. */
type OpaqueTokenPrefix = 'prt_' | 'pst_';

export interface OpaqueToken {
  /** The whole token, which is shown once and not stored. */
  readonly text: string;
  /** SHA-256 of the text, 32 bytes. */
  readonly digest: Buffer;
}

/** 32 bytes in base64url without padding. */
const SECRET_BYTES = 32;
const SECRET = /^[0-9A-Za-z_-]{43}$/;
const NONCE_BYTES = 16;

function opaqueToken(prefix: OpaqueTokenPrefix, secret: Uint8Array): OpaqueToken {
  const text = prefix + Buffer.from(secret).toString('base64url');
  return { text, digest: opaqueDigest(text) };
}

/** Reports whether the text has this form. Postern never issued any other text, so it needs no lookup. */
function hasOpaqueForm(prefix: OpaqueTokenPrefix, text: string): boolean {
  return text.startsWith(prefix) && SECRET.test(text.slice(prefix.length));
}

export function opaqueDigest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** Makes a token with which a user sets a first or a forgotten password. */
export function makeOneTimeToken(random: RandomSource = randomBytes): OpaqueToken {
  return opaqueToken('pst_', random(SECRET_BYTES));
}

export function isOneTimeToken(text: string): boolean {
  return hasOpaqueForm('pst_', text);
}

export function makeRefreshToken(random: RandomSource = randomBytes): OpaqueToken {
  return opaqueToken('prt_', random(SECRET_BYTES));
}

export function isRefreshToken(text: string): boolean {
  return hasOpaqueForm('prt_', text);
}

/** Makes the nonce of a new refresh token's row, on which the token's successor depends. */
export function makeRefreshNonce(random: RandomSource = randomBytes): Uint8Array {
  return random(NONCE_BYTES);
}

/**
 * Returns the one successor of a refresh token: equal arguments give the same successor.
 * @param nonce of the token's row
 */
export function deriveSuccessor(secretKey: string, token: string, nonce: Uint8Array): OpaqueToken {
  // All tokens have the same length, so the border between token and nonce is certain.
  const secret = createHmac('sha256', deriveKey(secretKey, 'refresh-successor')).update(token).update(nonce).digest();
  return opaqueToken('prt_', secret);
}
