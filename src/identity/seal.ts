/**
 * Uses of `secret-key`: one key for each purpose by HKDF (RFC 5869), so that no two uses share a key, authenticated
 * encryption of stored secrets, and authentication codes.
 */

import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { RandomSource } from './api-keys.ts';

/** The purpose of a derived key. A new use takes a new label and never an existing one. */
type KeyPurpose =
  | 'signing-keys'
  | 'refresh-successor'
  | 'audit-chain'
  | 'reservation-ids'
  | 'retired-audit-keys'
  | 'issuer-clients'
  | 'webhooks'
  | 'sso-states'
  | 'sso-id-tokens';

const SALT = 'postern';
const KEY_BYTES = 32;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** The first byte of sealed data, which determines the layout of the rest (nonce, ciphertext, tag). */
const VERSION = 1;

/** @param secretKey the configured text, at least 32 characters */
export function deriveKey(secretKey: string, purpose: KeyPurpose): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secretKey, SALT, `postern/${purpose}/1`, KEY_BYTES));
}

/**
 * Returns a function that authenticates texts: HMAC-SHA-256 (RFC 2104) under a key of its own.
 * @param secretKey the configured text, at least 32 characters
 */
export function macUnder(secretKey: string, purpose: KeyPurpose): (text: string) => Uint8Array {
  const key = deriveKey(secretKey, purpose);
  return (text) => createHmac('sha256', key).update(text).digest();
}

/** @param context the owner of the sealed bytes, such as a row's id: they open only with the same context */
export function seal(key: Uint8Array, plain: Uint8Array, context: string, random: RandomSource = randomBytes): Buffer {
  const nonce = random(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  return Buffer.concat([Buffer.of(VERSION), nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Returns the plain bytes; undefined if they were sealed under another key or context, or have changed. */
export function open(key: Uint8Array, sealed: Uint8Array, context: string): Buffer | undefined {
  if (sealed.length < 1 + NONCE_BYTES + TAG_BYTES || sealed[0] !== VERSION) {
    return undefined;
  }
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(1, 1 + NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  try {
    return Buffer.concat([
      decipher.update(sealed.subarray(1 + NONCE_BYTES, sealed.length - TAG_BYTES)),
      decipher.final(),
    ]);
  } catch {
    return undefined;
  }
}

/** The installation's keys. The second one is valid while the installation changes its `secret-key`. */
export interface SecretKeys {
  readonly secretKey: string;
  readonly otherSecretKey?: string | undefined;
}

/** Returns the text sealed under the current key, for one purpose and one context. */
export function sealText({ secretKey }: SecretKeys, purpose: KeyPurpose, text: string, context: string): Buffer {
  return seal(deriveKey(secretKey, purpose), Buffer.from(text), context);
}

/** Returns the same text sealed under `to`; undefined if it was not sealed under `from`. */
export function resealText(
  { from, to }: { readonly from: string; readonly to: string },
  purpose: KeyPurpose,
  sealed: Uint8Array,
  context: string,
): Buffer | undefined {
  const text = openText({ secretKey: from }, purpose, sealed, context);
  return text === undefined ? undefined : sealText({ secretKey: to }, purpose, text, context);
}

/** Returns the sealed text; undefined if it was sealed under another key, for another purpose or for another context. */
export function openText(
  { secretKey, otherSecretKey }: SecretKeys,
  purpose: KeyPurpose,
  sealed: Uint8Array,
  context: string,
): string | undefined {
  for (const key of [secretKey, otherSecretKey]) {
    const plain = key === undefined ? undefined : open(deriveKey(key, purpose), sealed, context);
    if (plain !== undefined) return plain.toString();
  }
  return undefined;
}
