/** The secret of a webhook's signatures, sealed under `secret-key`. It opens only for the webhook that it is of. */

import type { WebhookId } from '../../domain/ids.ts';
import type { RandomSource } from '../../identity/api-keys.ts';
import { openText, resealText, type SecretKeys, sealText } from '../../identity/seal.ts';
import type { Queryable } from '../../store/queryable.ts';
import { lockWebhookSecrets, replaceWebhookSeals } from './queries.ts';

const PURPOSE = 'webhooks';
/** The secret of a webhook from a setup file. The attempts of its deliveries fail until it is rotated. */
export const NO_SECRET = Buffer.alloc(0);

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** A new secret, in the form of Standard Webhooks 1.0: `whsec_` and 32 bytes in base64. */
export function makeSecret(random: RandomSource): string {
  return PREFIX + Buffer.from(random(SECRET_BYTES)).toString('base64');
}

/** Returns the key that a secret is the text of. */
export function secretBytes(secret: string): Buffer {
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

export function sealSecret(keys: SecretKeys, id: WebhookId, secret: string): Buffer {
  return sealText(keys, PURPOSE, secret, id);
}

/** Returns the secret; undefined if it was sealed under another key or for another webhook. */
export function openSecret(keys: SecretKeys, id: WebhookId, sealed: Uint8Array): string | undefined {
  return openText(keys, PURPOSE, sealed, id);
}

/**
 * Seals the secrets again that are sealed under `from`, in the transaction that changes the key of the installation.
 * @returns the number of webhooks
 */
export async function resealWebhookSecrets(trx: Queryable, from: string, to: string): Promise<number> {
  let replaced = 0;
  for (const { id, secret_sealed, previous_sealed } of await lockWebhookSecrets(trx)) {
    const again = (sealed: Buffer) => resealText({ from, to }, PURPOSE, sealed, id);
    const [secret, previous] = [again(secret_sealed), previous_sealed === null ? undefined : again(previous_sealed)];
    if (secret === undefined && previous === undefined) continue;
    await replaceWebhookSeals(trx, id, {
      secret_sealed: secret ?? secret_sealed,
      previous_sealed: previous ?? previous_sealed,
    });
    replaced += 1;
  }
  return replaced;
}
