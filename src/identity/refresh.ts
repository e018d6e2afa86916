/**
 * Refresh tokens. A used token's successor is not stored: it is derived under `secret-key` from the token and a nonce in its row. Whoever
 * lost the answer gets the same successor again, the database alone reveals none, and neither does an old token.
 */

import { createHmac, randomBytes } from 'node:crypto';
import type { RandomSource } from './api-keys.ts';
import { hasOpaqueForm, makeOpaqueToken, type OpaqueToken, opaqueDigest, opaqueToken } from './opaque-tokens.ts';
import { deriveKey } from './seal.ts';

const NONCE_BYTES = 16;

export function makeRefreshToken(random: RandomSource = randomBytes): OpaqueToken {
  return makeOpaqueToken('prt_', random);
}

/** The nonce of a new token's row; its successor hangs on it. */
export function makeRefreshNonce(random: RandomSource = randomBytes): Uint8Array {
  return random(NONCE_BYTES);
}

export function isRefreshToken(text: string): boolean {
  return hasOpaqueForm('prt_', text);
}

export function refreshDigest(text: string): Buffer {
  return opaqueDigest(text);
}

/**
 * The one successor of a token: the same inputs always give the same.
 * @param nonce of the token's row
 */
export function deriveSuccessor(secretKey: string, token: string, nonce: Uint8Array): OpaqueToken {
  // The token has one length, so token and nonce cannot run into each other.
  const secret = createHmac('sha256', deriveKey(secretKey, 'refresh-successor')).update(token).update(nonce).digest();
  return opaqueToken('prt_', secret);
}
