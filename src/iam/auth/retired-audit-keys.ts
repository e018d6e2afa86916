/**
 * The audit keys of former `secret-key`s, sealed under the current one. Each is valid for the seals up to one seal,
 * whose hash is stored with it. A leaked former key can therefore forge neither that part of the chain nor anything
 * after it.
 */

import { createHmac } from 'node:crypto';
import { Fault } from '../../domain/errors.ts';
import { openText, type SecretKeys, sealText } from '../../identity/seal.ts';
import type { RetiredMac } from '../../store/audit-verify.ts';
import { putMeta, readMeta } from '../../store/meta.ts';
import type { Queryable } from '../../store/queryable.ts';

const NAME = 'retired_audit_keys';
const PURPOSE = 'retired-audit-keys';

/** Hexadecimal digits, except the number of the seal. */
interface RetiredAuditKey {
  readonly key: string;
  readonly through: number;
  readonly hash: string;
}

/** Returns the keys for `postern verify-audit`. Throws a Fault if they were changed, or sealed under another key. */
export async function retiredAuditMacs(q: Queryable, secretKey: string): Promise<RetiredMac[]> {
  return (await readRetired(q, { secretKey })).map(({ key, through, hash }) => {
    const bytes = Buffer.from(key, 'hex');
    return {
      mac: (text) => createHmac('sha256', bytes).update(text).digest(),
      through,
      hash: Buffer.from(hash, 'hex'),
    };
  });
}

/** @param keys the keys that they may be sealed under */
export async function readRetired(q: Queryable, keys: SecretKeys): Promise<readonly RetiredAuditKey[]> {
  const stored = await readMeta(q, NAME);
  if (stored === undefined) return [];
  const plain = openText(keys, PURPOSE, Buffer.from(stored, 'base64'), NAME);
  if (plain !== undefined) return JSON.parse(plain);
  throw new Fault('the former audit keys in the database were changed, or sealed with another secret-key');
}

export async function putRetired(trx: Queryable, secretKey: string, keys: readonly RetiredAuditKey[]): Promise<void> {
  const sealed = sealText({ secretKey }, PURPOSE, JSON.stringify(keys), NAME);
  await putMeta(trx, NAME, sealed.toString('base64'));
}
