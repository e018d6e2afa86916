/** The table of signing keys. */

import { Fault } from '../domain/errors.ts';
import type { PublicJwk, SigningKeyChange, SigningKeyStore, StoredSigningKey } from '../identity/ports.ts';
import { auditStatement } from './audit-rows.ts';
import type { Database } from './database.ts';
import type { RunStatement } from './pool.ts';
import { transactionOfStatements } from './transaction.ts';

/** An advisory lock. No other lock of the schema has this number. */
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
    load: () => loadKeys(db.pool.run),
    change: (plan) =>
      transactionOfStatements(db, async (run) => {
        let planned: SigningKeyChange | undefined;
        const keys = await changeSigningKeys(run, (present) => {
          planned = plan(present);
          return planned;
        });
        await recordUpkeep(run, planned);
        return keys;
      }),
  };
}

/** Audits the changes that servers make by themselves. */
async function recordUpkeep(run: RunStatement, planned: SigningKeyChange | undefined): Promise<void> {
  if (planned === undefined || planned.insert.length + planned.retire.length + planned.remove.length === 0) return;
  const row = auditStatement({
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
  await run(row);
}

/** Like `SigningKeyStore.change`, in a transaction. */
export async function changeSigningKeys(
  run: RunStatement,
  plan: Parameters<SigningKeyStore['change']>[0],
): Promise<readonly StoredSigningKey[]> {
  const { insert, retire, remove } = plan(await lockKeys(run));
  for (const key of insert) await run({ text: INSERT, values: valuesOf(key) });
  for (const { kid, retiredAtMs } of retire) {
    const values = [kid, new Date(retiredAtMs)];
    await run({ text: 'update signing_keys set retired_at = $2 where kid = $1', values });
  }
  if (remove.length > 0) await run({ text: 'delete from signing_keys where kid = any($1)', values: [remove] });
  return loadKeys(run);
}

/**
 * Replaces a key's sealed part by the result of `reseal`, unless it is undefined. Returns the number of replaced keys.
 */
export async function resealSigningKeys(
  run: RunStatement,
  reseal: (key: StoredSigningKey) => Uint8Array | undefined,
): Promise<number> {
  let replaced = 0;
  for (const key of await lockKeys(run)) {
    const sealed = reseal(key);
    if (sealed === undefined) continue;
    await run({ text: 'update signing_keys set private_sealed = $2 where kid = $1', values: [key.kid, sealed] });
    replaced++;
  }
  return replaced;
}

/** Reads the keys under a lock until the transaction ends, so that each change sees the one before it. */
async function lockKeys(run: RunStatement): Promise<readonly StoredSigningKey[]> {
  await run({ text: 'select pg_advisory_xact_lock($1)', values: [RING_LOCK] });
  return loadKeys(run);
}

const COLUMNS = 'kid, public_jwk, private_sealed, signs_from, retired_at';
const INSERT = `insert into signing_keys (${COLUMNS}) values ($1, $2, $3, $4, $5)`;

async function loadKeys(run: RunStatement): Promise<readonly StoredSigningKey[]> {
  return (await run<KeyRow>({ text: `select ${COLUMNS} from signing_keys order by signs_from, kid` })).map(keyOf);
}

/** The values of `COLUMNS`. */
function valuesOf({ kid, publicJwk, privateSealed, signsFromMs, retiredAtMs }: StoredSigningKey): readonly unknown[] {
  return [
    kid,
    publicJwk,
    privateSealed,
    new Date(signsFromMs),
    retiredAtMs === undefined ? null : new Date(retiredAtMs),
  ];
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
