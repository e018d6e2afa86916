/** Sessions that begin with a token of an issuer: what begins them, what ends them, and their number. */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type IssuerId, type KeyId, makeId, type SessionId, type TenantId, type UserId } from '../../src/domain/ids.ts';
import { endSessionsOfIssuer } from '../../src/iam/issuers/reference-queries.ts';
import { beginIssuerSession, type SessionOwner } from '../../src/iam/sessions/issuer-session-queries.ts';
import { endSessions, MAX_SESSIONS } from '../../src/iam/sessions/queries.ts';
import { transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson } from './people.ts';

let database: FreshDatabase;
let user: UserId;
let key: KeyId;
let issuer: IssuerId;

const idOf = <P extends 'ses' | 'iss' | 'key'>(prefix: P) => makeId(prefix, Date.now(), randomBytes(10));

beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  const { knex } = database.db;
  user = await addPerson(database.db, { email: `${idOf('ses')}@example.com`, tenant: 'acme', roles: [] });
  issuer = idOf('iss');
  await knex.raw(
    `insert into issuers (id, tenant_id, name, kind, issuer, audiences, algorithms)
     values (:issuer, 'acme', :issuer, 'oidc', 'https://' || :issuer, '{postern}', '{RS256}')`,
    { issuer },
  );
  key = idOf('key');
  await knex.raw(
    `insert into api_keys (id, tenant_id, digest, prefix, last_four, scopes, description, created_by)
     values (:key, 'acme', :digest, '', '', '{chat:write}', 'a workload', 'nobody')`,
    { key, digest: randomBytes(32) },
  );
});

async function begin(owner: SessionOwner, details: { scope?: readonly string[] } = {}): Promise<SessionId | undefined> {
  const id = idOf('ses');
  const begun = await transaction(database.db, (trx) =>
    beginIssuerSession(trx, {
      session: { id, lifetimeMs: 60_000, cookie: false, address: '192.0.2.1', userAgent: undefined },
      owner,
      issuerId: issuer,
      ...details,
      audit: {
        actorType: owner.kind,
        actorId: owner.id,
        tenantId: 'acme' as TenantId,
        address: '192.0.2.1',
        action: 'auth.exchange',
        targetType: owner.kind,
        targetId: owner.id,
        result: 'success',
        before: undefined,
        after: { session_id: id },
        requestId: undefined,
      },
    }),
  );
  return begun ? id : undefined;
}

const ofUser = (): SessionOwner => ({ kind: 'user', id: user });
const ofKey = (): SessionOwner => ({ kind: 'api_key', id: key });

async function activeSessions(): Promise<readonly string[]> {
  const { rows } = await database.db.knex.raw<{ rows: { id: string }[] }>(
    'select id from sessions where (user_id = :user or api_key_id = :key) and ended_at is null order by id',
    { user, key },
  );
  return rows.map(({ id }) => id);
}

const change = (sql: string): Promise<unknown> => database.db.knex.raw(sql, { user, key, issuer });

describe.each([
  ['a user', ofUser],
  ['a key without a secret', ofKey],
])('a session of %s', (_name, owner) => {
  test('begins with its scope and its audit row', async () => {
    const id = await begin(owner(), { scope: ['chat:write'] });
    expect(await activeSessions()).toEqual([id]);
    const { rows } = await database.db.knex.raw<{ rows: unknown[] }>(
      `select s.scope, s.issuer_id, a.actor_type, a.target_id from sessions s
       join audit_log a on a.after->>'session_id' = s.id where s.id = :id`,
      { id: String(id) },
    );
    expect(rows).toEqual([
      { scope: ['chat:write'], issuer_id: issuer, actor_type: owner().kind, target_id: owner().id },
    ]);
  });

  test('does not begin with a disabled issuer', async () => {
    await change('update issuers set enabled = false where id = :issuer');
    expect(await begin(owner())).toBeUndefined();
    expect(await activeSessions()).toEqual([]);
  });

  test('ends with the sessions of its issuer', async () => {
    await begin(owner());
    await endSessionsOfIssuer(database.db.knex, issuer, 'all');
    expect(await activeSessions()).toEqual([]);
  });

  test('is the last of at most 1,000: the least recently used one ends', async () => {
    await database.db.knex.raw(
      `insert into sessions (id, user_id, api_key_id, issuer_id, last_used_at, expires_at)
       select 'ses_' || lpad(n::text, 26, '0'), :user, :key, :issuer, now() - n * interval '1 second', now() + interval '1 hour'
       from generate_series(1, :most) as n`,
      {
        issuer,
        user: owner().kind === 'user' ? user : null,
        key: owner().kind === 'user' ? null : key,
        most: MAX_SESSIONS,
      },
    );
    const id = await begin(owner());
    const active = await activeSessions();
    expect(active).toHaveLength(MAX_SESSIONS);
    expect(active).toContain(id);
    expect(active).not.toContain(`ses_${String(MAX_SESSIONS).padStart(26, '0')}`);
    await database.db.knex.raw("delete from sessions where id like 'ses_000%'");
  });
});

test.each([
  ['a deactivated user', ofUser, "update users set status = 'deactivated' where id = :user"],
  ['a revoked key', ofKey, 'update api_keys set revoked_at = now() where id = :key'],
  ['a disabled key', ofKey, 'update api_keys set disabled_at = now() where id = :key'],
  ['an expired key', ofKey, 'update api_keys set expires_at = now() where id = :key'],
])('no session of %s begins', async (_name, owner, sql) => {
  await change(sql);
  expect(await begin(owner())).toBeUndefined();
});

test('the sessions of a key end together, and those of others stay', async () => {
  await begin(ofKey());
  const other = await begin(ofUser());
  expect(await endSessions(database.db.knex, { api_key_id: key })).toBe(1);
  expect(await activeSessions()).toEqual([other]);
});
