/** People for tests of logging in, written straight into the tables. */

import { randomBytes } from 'node:crypto';
import { makeId, type UserId } from '../../src/domain/ids.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import type { Database } from '../../src/store/database.ts';
import { makePasswords } from './stand.ts';

export const PASSWORD = 'correct horse battery staple';

/** Hashing is slow by design, so all users here have the same hash. */
let hashed: Promise<string> | undefined;

export async function passwordHash(): Promise<string> {
  hashed ??= makePasswords().then((passwords) => passwords.hash(PASSWORD));
  return await hashed;
}

export interface Person {
  readonly email: string;
  readonly tenant?: string;
  readonly status?: 'active' | 'deactivated';
  readonly source?: 'local' | 'ldap';
  readonly roles?: readonly string[];
  /** Null = no password; absent = that of PASSWORD. */
  readonly hash?: string | null;
}

export async function addPerson(db: Database, person: Person): Promise<UserId> {
  const id = makeId('usr', Date.now(), randomBytes(10));
  const tenant = person.tenant ?? 'default';
  await db.knex('tenants').insert({ id: tenant, name: tenant }).onConflict('id').ignore();
  await db.knex('users').insert({
    id,
    tenant_id: tenant,
    email: person.email,
    name: `Name of ${person.email}`,
    status: person.status ?? 'active',
    source: person.source ?? 'local',
    password_hash: person.hash === undefined ? await passwordHash() : person.hash,
    password_changed_at: person.hash === null ? null : new Date(),
  });
  for (const role of person.roles ?? []) await db.knex('user_roles').insert({ user_id: id, role_name: role });
  return id;
}

/** Creates a key of a user, with every scope that its roles give. @returns its secret */
export async function addKey(db: Database, owner: UserId, tenant = 'default'): Promise<string> {
  const { text, digest, prefix, lastFour } = makeApiKey();
  await db.knex('api_keys').insert({
    id: makeId('key', Date.now(), randomBytes(10)),
    tenant_id: tenant,
    user_id: owner,
    description: 'of a test',
    digest: Buffer.from(digest, 'hex'),
    prefix,
    last_four: lastFour,
    scopes: ['*:*'],
    created_by: owner,
  });
  return text;
}

/** Empties the database. It deletes rows instead of truncating tables, so that the change feed reports them. */
export async function clear(db: Database): Promise<void> {
  for (const table of ['audit_log', 'login_failures', 'api_keys', 'sessions', 'users', 'tenants'])
    await db.knex.raw(`delete from ${table}`);
}

export interface AuditLine {
  readonly actor: string;
  readonly tenant: string | null;
  readonly action: string;
  readonly target: string | null;
  readonly result: string;
  readonly address: string | null;
}

/** Returns the audit log from its first row, except the upkeep of signing keys. */
export async function auditOf(db: Database): Promise<readonly AuditLine[]> {
  const { rows } = await db.knex.raw<{ rows: AuditLine[] }>(
    `select coalesce(actor_id, actor_type) as actor, tenant_id as tenant, action, target_id as target, result, address
     from audit_log where action <> 'signing_key.upkeep' order by id`,
  );
  return rows;
}

/** Returns all rows of the tables that logins write, as one text. */
export async function everythingStored(db: Database): Promise<string> {
  const texts: string[] = [];
  for (const table of [
    'users',
    'sessions',
    'refresh_tokens',
    'one_time_tokens',
    'login_failures',
    'audit_log',
    'changes',
  ]) {
    const { rows } = await db.knex.raw<{ rows: { text: string }[] }>(
      `select cast(row_to_json(t) as text) as text from ${table} t`,
    );
    texts.push(...rows.map((row) => row.text));
    const { rows: bytes } = await db.knex.raw<{ rows: { text: string }[] }>(
      `select cast(t as text) as text from ${table} t`,
    );
    texts.push(...bytes.map((row) => row.text));
  }
  return texts.join('\n');
}
