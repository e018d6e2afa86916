/**
 * The secret of the console's client at an issuer, sealed under `secret-key`. It opens only for the issuer that it was
 * sealed for.
 */

import type { IssuerId } from '../../domain/ids.ts';
import { openText, resealText, type SecretKeys, sealText } from '../../identity/seal.ts';
import type { Queryable } from '../../store/queryable.ts';
import { lockSealedSecrets, replaceSealedSecret } from './queries.ts';

const PURPOSE = 'issuer-clients';

/** Seals the secret of a request. Undefined and null stay as they are: the stored secret stays, or is removed. */
export function sealRequested(keys: SecretKeys, id: IssuerId, secret: string | null | undefined) {
  return typeof secret === 'string' ? sealText(keys, PURPOSE, secret, id) : secret;
}

/** Returns the secret; undefined if it was sealed under another key or for another issuer. */
export function openClientSecret(keys: SecretKeys, id: IssuerId, sealed: Uint8Array): string | undefined {
  return openText(keys, PURPOSE, sealed, id);
}

/**
 * Seals the secrets again that are sealed under `from`, in the transaction that changes the key of the installation.
 * @returns their number
 */
export async function resealClientSecrets(trx: Queryable, from: string, to: string): Promise<number> {
  let replaced = 0;
  for (const { id, sealed } of await lockSealedSecrets(trx)) {
    const again = resealText({ from, to }, PURPOSE, sealed, id);
    if (again === undefined) continue;
    await replaceSealedSecret(trx, id, again);
    replaced += 1;
  }
  return replaced;
}
