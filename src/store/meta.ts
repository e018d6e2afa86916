/** Values that one server creates for an installation and that all its servers use. */

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import type { Database } from './database.ts';
import type { Queryable } from './queryable.ts';

declare module 'knex/types/tables.js' {
  interface Tables {
    meta: { readonly name: string; readonly value: string };
  }
}

/** This server's secret-key is not that of the installation. The message says what to do. */
export class SecretKeyError extends Error {
  override readonly name = 'SecretKeyError';
}

export async function readMeta(q: Queryable, name: string): Promise<string | undefined> {
  return (await q('meta').where({ name }).first('value'))?.value;
}

export async function putMeta(q: Queryable, name: string, value: string): Promise<void> {
  await q('meta').insert({ name, value }).onConflict('name').merge();
}

/** Returns the value under a name. The first caller of any server creates it. */
export async function metaValue({ knex }: Database, name: string, make: () => string): Promise<string> {
  const stored = await readMeta(knex, name);
  if (stored !== undefined) return stored;
  const value = make();
  await knex('meta').insert({ name, value }).onConflict('name').ignore();
  return (await readMeta(knex, name)) ?? value;
}

/** The issuer of this installation's tokens if the configuration names none. */
export function installationIssuer(db: Database): Promise<string> {
  return metaValue(db, 'issuer', () => `urn:uuid:${randomUUID()}`);
}

const SECRET_KEY_CHECK = 'secret_key_check';

/**
 * Makes sure that all servers have the same secret-key: a server with another one could not read what they sealed, and
 * would seal what they cannot read. Rejects with a SecretKeyError.
 * @param remembers false: a database that no server has used yet is not bound to this key
 */
export async function checkSecretKey(db: Database, secretKey: string, remembers = true): Promise<void> {
  const own = fingerprintOf(secretKey);
  const stored = remembers
    ? await metaValue(db, SECRET_KEY_CHECK, () => own)
    : ((await readMeta(db.knex, SECRET_KEY_CHECK)) ?? own);
  if (!isSame(stored, own)) {
    throw new SecretKeyError(
      'secret-key is not the key with which this database was set up. Give every server the same secret-key. With the embedded database, the key is the file secret-key in data-dir.',
    );
  }
}

/** Reports whether the database was set up with this key or changed to it. False if no server has used it yet. */
export async function isSecretKeyOf(db: Database, secretKey: string): Promise<boolean> {
  const stored = await readMeta(db.knex, SECRET_KEY_CHECK);
  return stored !== undefined && isSame(stored, fingerprintOf(secretKey));
}

/** Binds the database to this key when the transaction commits. */
export async function putSecretKey(trx: Queryable, secretKey: string): Promise<void> {
  await putMeta(trx, SECRET_KEY_CHECK, fingerprintOf(secretKey));
}

function fingerprintOf(secretKey: string): string {
  return createHmac('sha256', secretKey).update('postern secret-key check v1').digest('hex');
}

function isSame(stored: string, own: string): boolean {
  return stored.length === own.length && timingSafeEqual(Buffer.from(stored), Buffer.from(own));
}

const ADDITIVE_MIGRATIONS = 'additive_migrations';

/** Records for older programs which migrations they may ignore. */
export async function recordAdditive({ knex }: Database, names: readonly string[]): Promise<void> {
  const value = names.join(' ');
  if (names.length === 0 || value === (await readMeta(knex, ADDITIVE_MIGRATIONS))) return;
  await putMeta(knex, ADDITIVE_MIGRATIONS, value);
}

/** The migrations that the newest program so far recorded as additive. */
export async function recordedAdditive({ knex }: Database): Promise<readonly string[]> {
  return (await readMeta(knex, ADDITIVE_MIGRATIONS))?.split(' ') ?? [];
}
