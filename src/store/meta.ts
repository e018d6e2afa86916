/** Values that are made once for an installation and then the same on every server of it. */

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import type { Database } from './database.ts';

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
  await db.query({ text: 'insert into meta (name, value) values ($1, $2) on conflict (name) do nothing', values: [name, value] });
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
  const ours = createHmac('sha256', secretKey).update('postern secret-key check v1').digest('hex');
  const kept = remembers ? await metaValue(db, 'secret_key_check', () => ours) : ((await read(db, 'secret_key_check')) ?? ours);
  if (kept.length !== ours.length || !timingSafeEqual(Buffer.from(kept), Buffer.from(ours))) {
    throw new SecretKeyError(
      'secret-key is not the one that this database was set up with. Give every server the same secret-key; with the embedded database it is the file secret-key in data-dir.',
    );
  }
}

async function read(db: Database, name: string): Promise<string | undefined> {
  const [row] = await db.query({ text: 'select value from meta where name = $1', values: [name] });
  return row === undefined ? undefined : String(row['value']);
}
