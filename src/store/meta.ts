/** Values that are made once for an installation and then the same on every server of it. */

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import type { Database } from './database.ts';
import type { Queryable } from './queryable.ts';

/** This server's secret-key is not the one that the installation was made with. The message says what to do. */
export class SecretKeyError extends Error {
  override readonly name = 'SecretKeyError';
}

/** The value under a name, made and kept by whoever asks first. Every caller gets the same one. */
export async function metaValue(db: Database, name: string, make: () => string): Promise<string> {
  const kept = await read(db, name);
  if (kept !== undefined) {
    return kept;
  }
  const value = make();
  await db.query({
    text: 'insert into meta (name, value) values ($1, $2) on conflict (name) do nothing',
    values: [name, value],
  });
  return (await read(db, name)) ?? value;
}

/** The issuer of this installation's tokens where the configuration names none. */
export function installationIssuer(db: Database): Promise<string> {
  return metaValue(db, 'issuer', () => `urn:uuid:${randomUUID()}`);
}

/**
 * Makes sure that all servers have the same secret-key: with another one, this one could read nothing that they have sealed, and
 * would seal what they cannot read. Rejects with a SecretKeyError.
 * @param remembers false: a database that no server has used yet is not bound to this key
 */
export async function checkSecretKey(db: Database, secretKey: string, remembers = true): Promise<void> {
  const ours = fingerprintOf(secretKey);
  const kept = remembers
    ? await metaValue(db, 'secret_key_check', () => ours)
    : ((await read(db, 'secret_key_check')) ?? ours);
  if (!isSame(kept, ours)) {
    throw new SecretKeyError(
      'secret-key is not the key with which this database was set up. Give every server the same secret-key. With the embedded database, the key is the file secret-key in data-dir.',
    );
  }
}

/** Whether the database was set up with this key, or changed to it since. False too when no server has used it yet. */
export async function isSecretKeyOf(db: Database, secretKey: string): Promise<boolean> {
  const kept = await read(db, 'secret_key_check');
  return kept !== undefined && isSame(kept, fingerprintOf(secretKey));
}

/** From the end of the transaction on, the database belongs to this key. */
export async function putSecretKey(trx: Queryable, secretKey: string): Promise<void> {
  await putMeta(trx, 'secret_key_check', fingerprintOf(secretKey));
}

export async function putMeta(trx: Queryable, name: string, value: string): Promise<void> {
  await trx.raw(
    'insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value',
    {
      name,
      value,
    },
  );
}

export async function readMeta(trx: Queryable, name: string): Promise<string | undefined> {
  const { rows } = await trx.raw<{ rows: { value: string }[] }>('select value from meta where name = :name', { name });
  return rows[0]?.value;
}

function fingerprintOf(secretKey: string): string {
  return createHmac('sha256', secretKey).update('postern secret-key check v1').digest('hex');
}

function isSame(kept: string, ours: string): boolean {
  return kept.length === ours.length && timingSafeEqual(Buffer.from(kept), Buffer.from(ours));
}

const ADDITIVE_MIGRATIONS = 'additive_migrations';

/** Records for older programs which migrations they may ignore. */
export async function recordAdditive(db: Database, names: readonly string[]): Promise<void> {
  const value = names.join(' ');
  if (names.length === 0 || value === (await read(db, ADDITIVE_MIGRATIONS))) return;
  await db.query({
    text: 'insert into meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    values: [ADDITIVE_MIGRATIONS, value],
  });
}

/** The migrations that the newest program so far recorded as additive. */
export async function recordedAdditive(db: Database): Promise<readonly string[]> {
  return (await read(db, ADDITIVE_MIGRATIONS))?.split(' ') ?? [];
}

async function read(db: Database, name: string): Promise<string | undefined> {
  const [row] = await db.query({ text: 'select value from meta where name = $1', values: [name] });
  return row === undefined ? undefined : String(row['value']);
}
