/** The table of signing keys. */

import { Fault } from '../domain/errors.ts';
import { ownMember } from '../domain/json.ts';
import type { PublicJwk, SigningKeyChange, SigningKeyStore, StoredSigningKey } from '../identity/ports.ts';
import { insertAudit } from './audit-rows.ts';
import type { Database } from './database.ts';
import type { Queryable } from './queryable.ts';
import { transaction } from './transaction.ts';

/** An advisory lock. No other lock of the schema has this number. */
const RING_LOCK = 726543490;

interface KeyRow {
  readonly kid: string;
  readonly public_jwk: unknown;
  readonly private_sealed: Uint8Array;
  readonly signs_from: Date;
  readonly retired_at: Date | null;
}

declare module 'knex/types/tables.js' {
  interface Tables {
    signing_keys: KeyRow;
  }
}

export function signingKeyStore(db: Database): SigningKeyStore {
  return {
    load: () => loadKeys(db.knex),
    change: (plan) =>
      transaction(db, async (trx) => {
        let planned: SigningKeyChange | undefined;
        const keys = await changeSigningKeys(trx, (present) => {
          planned = plan(present);
          return planned;
        });
        await recordUpkeep(trx, planned);
        return keys;
      }),
  };
}

/** Audits the changes that servers make by themselves. */
async function recordUpkeep(trx: Queryable, planned: SigningKeyChange | undefined): Promise<void> {
  if (planned === undefined || planned.insert.length + planned.retire.length + planned.remove.length === 0) return;
  await insertAudit(trx, {
    actorType: 'system',
    action: 'signing_key.upkeep',
    targetType: 'signing_key',
    targetId: planned.insert[0]?.kid,
    result: 'success',
    after: {
      published: planned.insert.map(({ kid }) => kid),
      retired: planned.retire.map(({ kid }) => kid),
      removed: planned.remove,
    },
  });
}

/** Like `SigningKeyStore.change`, in a transaction. */
export async function changeSigningKeys(
  trx: Queryable,
  plan: Parameters<SigningKeyStore['change']>[0],
): Promise<readonly StoredSigningKey[]> {
  const { insert, retire, remove } = plan(await lockKeys(trx));
  if (insert.length > 0) await trx('signing_keys').insert(insert.map(rowOf));
  for (const { kid, retiredAtMs } of retire) {
    await trx('signing_keys')
      .where({ kid })
      .update({ retired_at: new Date(retiredAtMs) });
  }
  if (remove.length > 0) await trx('signing_keys').whereIn('kid', remove).delete();
  return loadKeys(trx);
}

/**
 * Replaces a key's sealed part by the result of `reseal`, unless it is undefined. Returns the number of replaced keys.
 */
export async function resealSigningKeys(
  trx: Queryable,
  reseal: (key: StoredSigningKey) => Uint8Array | undefined,
): Promise<number> {
  let replaced = 0;
  for (const key of await lockKeys(trx)) {
    const sealed = reseal(key);
    if (sealed === undefined) continue;
    await trx('signing_keys').where({ kid: key.kid }).update({ private_sealed: sealed });
    replaced++;
  }
  return replaced;
}

/** Reads the keys under a lock until the transaction ends, so that each change sees the one before it. */
async function lockKeys(trx: Queryable): Promise<readonly StoredSigningKey[]> {
  await trx.raw('select pg_advisory_xact_lock(?)', [RING_LOCK]);
  return loadKeys(trx);
}

async function loadKeys(q: Queryable): Promise<readonly StoredSigningKey[]> {
  return (await q('signing_keys').select().orderBy(['signs_from', 'kid'])).map(keyOf);
}

function rowOf(key: StoredSigningKey): KeyRow {
  return {
    kid: key.kid,
    public_jwk: key.publicJwk,
    private_sealed: key.privateSealed,
    signs_from: new Date(key.signsFromMs),
    retired_at: key.retiredAtMs === undefined ? null : new Date(key.retiredAtMs),
  };
}

function keyOf(row: KeyRow): StoredSigningKey {
  return {
    kid: row.kid,
    publicJwk: publicJwkOf(row),
    privateSealed: row.private_sealed,
    signsFromMs: row.signs_from.getTime(),
    retiredAtMs: row.retired_at?.getTime(),
  };
}

function publicJwkOf({ kid, public_jwk: jwk }: KeyRow): PublicJwk {
  const [x, y] = [ownMember(jwk, 'x'), ownMember(jwk, 'y')];
  if (typeof x === 'string' && typeof y === 'string') return { kty: 'EC', crv: 'P-256', x, y };
  throw new Fault(`the stored signing key ${kid} has no P-256 public key`);
}
