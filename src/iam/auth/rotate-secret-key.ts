/**
 * Changes the installation's `secret-key` for the operator, without a caller, while every server accepts both keys. One
 * transaction seals everything again that is stored under the former key. Servers write under the key of their start
 * until they restart, so the command may be repeated, and reports how much was left.
 */

import { Fault } from '../../domain/errors.ts';
import { deriveKey, macUnder } from '../../identity/seal.ts';
import { resealed } from '../../identity/signing-key.ts';
import { headMac, hex, sameBytes } from '../../store/audit-chain.ts';
import { CHAIN_LOCK } from '../../store/audit-seal.ts';
import { chainEnd, putChainHead } from '../../store/audit-seal-queries.ts';
import { isSecretKeyOf, putSecretKey, SecretKeyError } from '../../store/meta.ts';
import type { Queryable } from '../../store/queryable.ts';
import { resealSigningKeys } from '../../store/signing-keys.ts';
import type { AdminParts } from '../caller/caller.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';
import { resealClientSecrets } from '../issuers/client-secret.ts';
import { resealWebhookSecrets } from '../webhooks/secret.ts';
import { putRetired, readRetired } from './retired-audit-keys.ts';

interface SecretKeyParts extends Pick<AdminParts, 'db' | 'feed' | 'flush' | 'now'> {
  readonly from: string;
  readonly to: string;
}

export interface SecretKeyRotation {
  /**
   * False: the database belonged to the new key already, and the command sealed what servers had written under the
   * former key since.
   */
  readonly changed: boolean;
  /** Signing keys that were sealed under the former key. */
  readonly signingKeys: number;
  /** Secrets of issuers' clients that were sealed under the former key. */
  readonly clientSecrets: number;
  /** Webhooks whose secrets were sealed under the former key. */
  readonly webhookSecrets: number;
  /** True if the newest seal of the audit log was signed under the former key. */
  readonly auditHead: boolean;
}

/** Rejects with a SecretKeyError if the database belongs to neither key. */
export async function rotateSecretKey(parts: SecretKeyParts): Promise<SecretKeyRotation> {
  const { db, from, to } = parts;
  const changed = await isSecretKeyOf(db, from);
  if (!changed && !(await isSecretKeyOf(db, to))) {
    throw new SecretKeyError(
      'The database uses neither secret-key nor secret-key-previous. Nothing was changed. Set secret-key-previous to the key that the servers use.',
    );
  }
  return changeAsSystem(parts, OPERATOR, { action: 'secret_key.rotate' }, async (trx, audit) => {
    const [fromSeal, toSeal] = [deriveKey(from, 'signing-keys'), deriveKey(to, 'signing-keys')];
    const signingKeys = await resealSigningKeys(trx, (key) => resealed(key, fromSeal, toSeal));
    const clientSecrets = await resealClientSecrets(trx, from, to);
    const webhookSecrets = await resealWebhookSecrets(trx, from, to);
    const auditHead = await handOverChain(trx, from, to);
    await putSecretKey(trx, to);
    audit.after = {
      changed,
      signing_keys: signingKeys,
      client_secrets: clientSecrets,
      webhook_secrets: webhookSecrets,
      audit_head: auditHead,
    };
    return { changed, signingKeys, clientSecrets, webhookSecrets, auditHead };
  });
}

/**
 * Signs the chain's head under the new key, and stores the former key for the seals before. Returns whether it was
 * needed.
 */
async function handOverChain(trx: Queryable, from: string, to: string): Promise<boolean> {
  await trx.raw('select pg_advisory_xact_lock(?)', [CHAIN_LOCK]);
  const retired = await readRetired(trx, { secretKey: to, otherSecretKey: from });
  const [fromMac, toMac] = [macUnder(from, 'audit-chain'), macUnder(to, 'audit-chain')];
  const { head } = await chainEnd(trx);
  const key = hex(deriveKey(from, 'audit-chain'));
  const isLeft = head !== undefined && !sameBytes(head.mac, headMac(toMac, head.seq, head.hash));
  if (head === undefined) {
    await putRetired(trx, to, retired);
    return false;
  }
  if (isLeft && !sameBytes(head.mac, headMac(fromMac, head.seq, head.hash))) {
    throw new Fault('the newest seal of the audit log is signed with neither key. Run postern verify-audit first');
  }
  // Moved to the head each time, because seals of both keys may alternate before it while servers restart.
  await putRetired(trx, to, [
    ...retired.filter((each) => each.key !== key),
    { key, through: head.seq, hash: hex(head.hash) },
  ]);
  await putChainHead(trx, { ...head, mac: headMac(toMac, head.seq, head.hash) });
  return isLeft;
}
