/** Creates ES256 keys, seals them for the store, and opens them. */

import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto';
import { Fault } from '../domain/errors.ts';
import type { PublicJwk, StoredSigningKey } from './ports.ts';
import { open, seal } from './seal.ts';

export interface SigningKey {
  readonly kid: string;
  readonly publicJwk: PublicJwk;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
  readonly signsFromMs: number;
}

/** @param sealKey derived for 'signing-keys' */
export function makeSigningKey(sealKey: Uint8Array, signsFromMs: number): StoredSigningKey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  if (x === undefined || y === undefined) {
    throw new Fault('a new P-256 key has no coordinates');
  }
  const publicJwk: PublicJwk = { kty: 'EC', crv: 'P-256', x, y };
  const kid = thumbprint(publicJwk);
  const privateSealed = seal(sealKey, privateKey.export({ format: 'der', type: 'pkcs8' }), kid);
  return { kid, publicJwk, privateSealed, signsFromMs, retiredAtMs: undefined };
}

/**
 * @param otherSealKey of the other `secret-key` that is accepted while the installation changes its key
 * @throws Fault if the key was sealed under another `secret-key`
 */
export function openSigningKey(sealKey: Uint8Array, stored: StoredSigningKey, otherSealKey?: Uint8Array): SigningKey {
  const pkcs8 =
    open(sealKey, stored.privateSealed, stored.kid) ??
    (otherSealKey === undefined ? undefined : open(otherSealKey, stored.privateSealed, stored.kid));
  if (pkcs8 === undefined) {
    throw new Fault(
      `the signing key ${stored.kid} in the database cannot be decrypted with this secret-key. Restore the secret-key with which the database was set up`,
    );
  }
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  return {
    kid: stored.kid,
    publicJwk: stored.publicJwk,
    publicKey: createPublicKey(privateKey),
    privateKey,
    signsFromMs: stored.signsFromMs,
  };
}

/**
 * Seals the key's private part under another key. Returns undefined if it is sealed so already.
 * @param from derived for 'signing-keys' from the former `secret-key`
 * @param to likewise from the new one
 * @throws Fault if neither key opens it
 */
export function resealed(
  stored: Pick<StoredSigningKey, 'kid' | 'privateSealed'>,
  from: Uint8Array,
  to: Uint8Array,
): Buffer | undefined {
  if (open(to, stored.privateSealed, stored.kid) !== undefined) return undefined;
  const pkcs8 = open(from, stored.privateSealed, stored.kid);
  if (pkcs8 === undefined)
    throw new Fault(`the signing key ${stored.kid} cannot be decrypted with secret-key or secret-key-previous`);
  return seal(to, pkcs8, stored.kid);
}

/** RFC 7638: only the required members, in lexical order, without white space. */
function thumbprint({ kty, crv, x, y }: PublicJwk): string {
  return hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url');
}
