/** A database of its own for each test that asks: a copy of a migrated one, gone when it is closed. */

import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { TEMPLATE } from './global-setup.ts';

export interface FreshDatabase {
  readonly url: string;
  readonly db: Database;
  close(): Promise<void>;
}

/**
 * A machine that is busy with other tests may take longer than the product's 2 s for a statement or a wait for locks, and a test of
 * something else would then see 503.
 */
export const PATIENT = { acquireTimeoutMs: 30_000, queryTimeoutMs: 30_000 } as const;

/** @param from an empty string gives a database without our schema */
export async function freshDatabase(from: string = TEMPLATE): Promise<FreshDatabase> {
  const serverUrl = inject('databaseUrl');
  const name = `test_${randomBytes(8).toString('hex')}`;
  const admin = openDatabase({ url: serverUrl, poolMax: 1, queryTimeoutMs: 30_000 });
  await admin.knex.raw(`create database ${name} ${from === '' ? '' : `template ${from}`}`);
  const url = serverUrl.replace('/postern?', `/${name}?`);
  const db = openDatabase({ url, ...PATIENT });
  return {
    url,
    db,
    async close() {
      await db.close();
      await admin.knex.raw(`drop database ${name} with (force)`);
      await admin.close();
    },
  };
}
