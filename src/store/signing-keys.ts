/** The signing keys' table. */

import { Fault } from '../domain/errors.ts';
import type { PublicJwk, SigningKeyChange, SigningKeyStore, StoredSigningKey } from '../identity/ports.ts';
import { insertAudit } from './audit-rows.ts';
import type { Database } from './database.ts';
import type { Queryable } from './queryable.ts';
import { transaction } from './transaction.ts';

/**
 * Held to the end of the transaction: whoever decides on the ring sees what the one before decided. Unlike the other
 * locks of the schema.
 */
const RING_LOCK = 726543490;

interface KeyRow {
  readonly kid: string;
  readonly public_jwk: unknown;
  readonly private_sealed: Uint8Array;
  readonly signs_from: Date;
  readonly retired_at: Date | null;
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

/** What servers do to the keys by themselves is written down like everything else. */
async function recordUpkeep(trx: Queryable, planned: SigningKeyChange | undefined): Promise<void> {
  if (planned === undefined || planned.insert.length + planned.retire.length + planned.remove.length === 0) return;
  await insertAudit(trx, {
    actorType: 'system',
    actorId: undefined,
    tenantId: undefined,
    address: undefined,
    action: 'signing_key.upkeep',
    targetType: 'signing_key',
    targetId: planned.insert[0]?.kid,
    result: 'success',
    before: undefined,
    after: {
      published: planned.insert.map(({ kid }) => kid),
      retired: planned.retire.map(({ kid }) => kid),
      removed: planned.remove,
    },
    requestId: undefined,
  });
}

/** As `SigningKeyStore.change`, inside a transaction. */
export async function changeSigningKeys(
  trx: Queryable,
  plan: Parameters<SigningKeyStore['change']>[0],
): Promise<readonly StoredSigningKey[]> {
  await trx.raw('select pg_advisory_xact_lock(?)', [RING_LOCK]);
  const { insert, retire, remove } = plan(await loadKeys(trx));
  for (const key of insert) {
    await insertKey(trx, key);
  }
  for (const { kid, retiredAtMs } of retire) {
    await trx.raw('update signing_keys set retired_at = :at where kid = :kid', { kid, at: new Date(retiredAtMs) });
  }
  for (const kid of remove) {
    await trx.raw('delete from signing_keys where kid = :kid', { kid });
  }
  return loadKeys(trx);
}

/** Replaces what `reseal` gives for a key; undefined leaves it. Resolves with how many it replaced. */
export async function resealSigningKeys(
  trx: Queryable,
  reseal: (key: StoredSigningKey) => Uint8Array | undefined,
): Promise<number> {
  await trx.raw('select pg_advisory_xact_lock(?)', [RING_LOCK]);
  let replaced = 0;
  for (const key of await loadKeys(trx)) {
    const sealed = reseal(key);
    if (sealed === undefined) continue;
    await trx.raw('update signing_keys set private_sealed = :sealed where kid = :kid', { kid: key.kid, sealed });
    replaced++;
  }
  return replaced;
}

async function loadKeys(q: Queryable): Promise<readonly StoredSigningKey[]> {
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    'select kid, public_jwk, private_sealed, signs_from, retired_at from signing_keys order by signs_from, kid',
  );
  return rows.map(keyOf);
}

async function insertKey(q: Queryable, key: StoredSigningKey): Promise<void> {
  await q.raw(
    `insert into signing_keys (kid, public_jwk, private_sealed, signs_from, retired_at)
     values (:kid, :publicJwk, :privateSealed, :signsFrom, :retiredAt)`,
    {
      kid: key.kid,
      publicJwk: JSON.stringify(key.publicJwk),
      privateSealed: key.privateSealed,
      signsFrom: new Date(key.signsFromMs),
      retiredAt: key.retiredAtMs === undefined ? null : new Date(key.retiredAtMs),
    },
  );
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
  if (
    typeof jwk === 'object' &&
    jwk !== null &&
    'x' in jwk &&
    'y' in jwk &&
    typeof jwk.x === 'string' &&
    typeof jwk.y === 'string'
  ) {
    return { kty: 'EC', crv: 'P-256', x: jwk.x, y: jwk.y };
  }
  throw new Fault(`the stored signing key ${kid} has no P-256 public key`);
}
