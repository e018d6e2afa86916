/**
 * The ID token of a login, sealed with its session. The provider's logout may ask for it (OpenID Connect RP-Initiated
 * Logout 1.0, `id_token_hint`). Nothing reads it as a proof.
 */

import type { SessionId } from '../../domain/ids.ts';
import { openText, type SecretKeys, sealText } from '../../identity/seal.ts';

/** A larger token does not fit into the address of the provider's logout. Then the provider asks the user. */
const MAX_LENGTH = 6_000;
const PURPOSE = 'sso-id-tokens';

/** Returns undefined for a token that is too large to keep. */
export function sealIdToken(keys: SecretKeys, id: SessionId, token: string): Buffer | undefined {
  return token.length > MAX_LENGTH ? undefined : sealText(keys, PURPOSE, token, id);
}

/** Returns undefined for a token that was sealed under another key. */
export function openIdToken(keys: SecretKeys, id: SessionId, sealed: Uint8Array): string | undefined {
  return openText(keys, PURPOSE, sealed, id);
}
