/** Proof that a text was written by somebody who has `secret-key`: HMAC-SHA-256 (RFC 2104) under a key of its own. */

import { createHmac } from 'node:crypto';
import { deriveKey, type KeyPurpose } from './seal.ts';

/** @param secretKey the configured text, at least 32 characters */
export function macUnder(secretKey: string, purpose: KeyPurpose): (text: string) => Uint8Array {
  const key = deriveKey(secretKey, purpose);
  return (text) => createHmac('sha256', key).update(text).digest();
}
