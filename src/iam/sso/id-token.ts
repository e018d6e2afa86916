/**
 * The ID token of a login, sealed with its session. The provider's logout may ask for it (OpenID Connect RP-Initiated
 * Logout 1.0, `id_token_hint`). Nothing reads it as a proof.
 */

import type { SessionId } from '../../domain/ids.ts';
import { deriveKey, open, seal } from '../../identity/seal.ts';

/** A larger token does not fit into the address of the provider's logout. Then the provider asks the user. */
const MAX_LENGTH = 6_000;
const PURPOSE = 'sso-id-tokens';

interface SecretKeys {
  readonly secretKey: string;
  readonly otherSecretKey?: string | undefined;
}

/** Returns undefined for a token that is too large to keep. */
export function sealIdToken({ secretKey }: SecretKeys, id: SessionId, token: string): Buffer | undefined {
  return token.length > MAX_LENGTH ? undefined : seal(deriveKey(secretKey, PURPOSE), Buffer.from(token), id);
}

/** Returns undefined for a token that was sealed under another key. */
export function openIdToken(
  { secretKey, otherSecretKey }: SecretKeys,
  id: SessionId,
  sealed: Uint8Array,
): string | undefined {
  for (const key of [secretKey, otherSecretKey]) {
    const plain = key === undefined ? undefined : open(deriveKey(key, PURPOSE), sealed, id);
    if (plain !== undefined) return plain.toString();
  }
  return undefined;
}
