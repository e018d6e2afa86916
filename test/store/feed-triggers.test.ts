import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { digestOf, seedKey, seedTenant, seedUser } from './seed.ts';

let fresh: FreshDatabase;
let mark = 0;

beforeAll(async () => {
  fresh = await freshDatabase();
  await seedTenant(fresh.db, 'acme');
});
afterAll(() => fresh.close());
beforeEach(async () => {
  mark = await position();
});

async function position(): Promise<number> {
  const [row] = await fresh.db.query({ text: 'select feed_position() as position' });
  return Number(row?.['position']);
}

/** Returns the changes in the feed since the start of the test or the last mark. */
async function told(): Promise<Set<string>> {
  const rows = await fresh.db.query({
    text: 'select kind, key from changes where seq > $1 order by seq',
    values: [mark],
  });
  return new Set(rows.map((row) => `${row['kind']} ${row['key']}`));
}

async function run(sql: string, ...values: unknown[]): Promise<void> {
  await fresh.db.query({ text: sql, values });
}

async function forget(): Promise<void> {
  mark = await position();
}

describe('the feed has a change for', () => {
  test('a key that is created, updated, rotated or deleted, under each of its digests', async () => {
    const [first, second] = [digestOf('first'), digestOf('second')];
    const id = await seedKey(fresh.db, 'acme', first);
    expect(await told()).toEqual(new Set([`key ${first}`]));
    for (const change of [
      "scopes = '{chat:read}'",
      'resource_constraints = \'{"models":[]}\'',
      'rate_limit_rpm = 7',
      'rate_limits = \'[{"models":["*"],"parallel":1}]\'',
      'metadata = \'{"team":"a"}\'',
      'expires_at = now()',
      "user_id = 'usr_x'",
      'revoked_at = now()',
      'disabled_at = now()',
    ]) {
      await forget();
      await run(`update api_keys set ${change} where id = $1`, id);
      expect(await told(), change).toEqual(new Set([`key ${first}`]));
    }
    await forget();
    await run(
      'update api_keys set previous_digest = digest, previous_until = now(), digest = $2 where id = $1',
      id,
      Buffer.from(second, 'hex'),
    );
    expect(await told()).toEqual(new Set([`key ${first}`, `key ${second}`]));
    await forget();
    await run('delete from api_keys where id = $1', id);
    expect(await told()).toEqual(new Set([`key ${first}`, `key ${second}`]));
  });

  test('no key and no session of which only the last use changes', async () => {
    const key = await seedKey(fresh.db, 'acme', digestOf('used'));
    const user = await seedUser(fresh.db, 'acme');
    const session = makeId('ses', 1, new Uint8Array(10));
    await run("insert into sessions (id, user_id, expires_at) values ($1, $2, now() + '1 day')", session, user);
    await forget();
    await run('update api_keys set last_used_at = now(), description = $2 where id = $1', key, 'another text');
    await run('update sessions set last_used_at = now() where id = $1', session);
    await run(
      "update users set name = 'Else', password_hash = 'x', directory_checked_at = now(), directory_claimed_at = now() where id = $1",
      user,
    );
    expect(await told()).toEqual(new Set([]));
  });

  test('a user whose state or roles change or that is deleted, and a session that ends or whose row is removed', async () => {
    const user = await seedUser(fresh.db, 'acme');
    const session = makeId('ses', 2, new Uint8Array(10));
    await run("insert into sessions (id, user_id, expires_at) values ($1, $2, now() + '1 day')", session, user);
    for (const change of [
      `insert into user_roles (user_id, role_name) values ('${user}', 'analyst')`,
      `delete from user_roles where user_id = '${user}'`,
      `update users set status = 'deactivated' where id = '${user}'`,
      `update users set rate_limits = '[]' where id = '${user}'`,
      `update users set source = 'ldap', directory = 'corp', directory_id = 'x:1', directory_suspension = 'removed', directory_suspended_at = now()
        where id = '${user}'`,
      `update users set directory_suspension = null, directory_suspended_at = null where id = '${user}'`,
    ]) {
      await forget();
      await run(change);
      expect(await told(), change).toEqual(new Set([`user ${user}`]));
    }
    await forget();
    await run('update sessions set ended_at = now() where id = $1', session);
    expect(await told()).toEqual(new Set([`session ${session}`]));
    await forget();
    await run('delete from users where id = $1', user);
    expect(await told()).toEqual(new Set([`user ${user}`]));
    await forget();
    await run('delete from sessions where id = $1', session);
    expect(await told()).toEqual(new Set([`session ${session}`]));
  });

  test('no new user with its first roles, but a user that is created again or already exists', async () => {
    const [made, kept] = [makeId('usr', 1, new Uint8Array(10)), makeId('usr', 2, new Uint8Array(10))];
    const make = (id: string) => `insert into users (id, tenant_id, name) values ('${id}', 'acme', 'Somebody')`;
    const give = (id: string) => `insert into user_roles (user_id, role_name) values ('${id}', 'analyst')`;
    const remove = (id: string) => `delete from users where id = '${id}'`;
    const inOne = (...statements: readonly string[]) =>
      transaction(fresh.db, async (trx) => {
        for (const statement of statements) await trx.raw(statement);
      });
    await forget();
    await inOne(make(made), give(made));
    expect(await told()).toEqual(new Set([]));
    await inOne(remove(made), make(made), give(made));
    expect(await told()).toEqual(new Set([`user ${made}`]));
    await run(make(kept));
    await forget();
    await inOne('savepoint here', remove(kept), make(kept), 'rollback to savepoint here', give(kept));
    expect(await told()).toEqual(new Set([`user ${kept}`]));
    await run(`delete from user_roles where user_id = '${kept}'`);
    await forget();
    await inOne(`${make(kept)} on conflict do nothing`, give(kept));
    expect(await told()).toEqual(new Set([`user ${kept}`]));
  });

  test('a tenant that changes, or whose roles, policies or attachments change', async () => {
    for (const change of [
      "update tenants set settings = '{}' where id = 'acme'",
      "insert into roles (tenant_id, name, permissions) values ('acme', 'helper', '{}')",
      "update roles set permissions = '{chat:read}' where tenant_id = 'acme'",
      "insert into policies (tenant_id, name, effect, actions, resources, applies_to) values ('acme', 'p', 'deny', '{*}', '{*}', 'roles')",
      "insert into policy_roles select id, 'helper' from policies where name = 'p'",
      "update policies set enabled = false where name = 'p'",
      "delete from policy_roles where role_name = 'helper'",
      "delete from policies where name = 'p'",
      "delete from roles where tenant_id = 'acme'",
    ]) {
      await forget();
      await run(change);
      expect(await told(), change).toEqual(new Set(['tenant acme']));
    }
  });

  test('global policies and signing keys', async () => {
    for (const change of [
      "insert into policies (name, effect, actions, resources, applies_to) values ('g', 'deny', '{*}', '{*}', 'roles')",
      "insert into policy_roles select id, 'analyst' from policies where name = 'g'",
      "delete from policies where name = 'g'",
    ]) {
      await forget();
      await run(change);
      expect(await told(), change).toEqual(new Set(['global ']));
    }
    await forget();
    await run("insert into signing_keys (kid, public_jwk, private_sealed, signs_from) values ('k', '{}', '', now())");
    expect(await told()).toEqual(new Set(['signing_keys ']));
  });

  test('a new epoch after TRUNCATE', async () => {
    const epoch = () => fresh.db.query({ text: 'select epoch from feed_state' });
    const before = await epoch();
    await run('truncate policy_roles');
    expect(await epoch()).not.toEqual(before);
  });

  test('a user with roles once in each transaction', async () => {
    const lines = async () =>
      (await fresh.db.query({ text: 'select kind from changes where seq > $1', values: [mark] })).map(
        ({ kind }) => kind,
      );
    const user = await seedUser(fresh.db, 'acme');
    await forget();
    const give = (role: string) => run('insert into user_roles (user_id, role_name) values ($1, $2)', user, role);
    await transaction(fresh.db, async (trx) => {
      await trx.raw('update users set status = status where id = ?', [user]);
      await trx.raw(`insert into user_roles (user_id, role_name) values (:user, 'analyst')`, { user });
      await trx.raw(`insert into user_roles (user_id, role_name) values (:user, 'auditor')`, { user });
    });
    expect(await lines()).toEqual(['user']);
    await give('viewer');
    expect(await lines()).toEqual(['user', 'user']);
  });

  test('changes after a rollback to a savepoint', async () => {
    await transaction(fresh.db, async (trx) => {
      await trx.raw('set constraints all immediate');
      await trx.raw('savepoint here');
      await trx.raw("update tenants set name = 'x' where id = 'acme'");
      await trx.raw('rollback to savepoint here');
      await trx.raw("update tenants set name = 'y' where id = 'acme'");
    });
    expect(await told()).toEqual(new Set(['tenant acme']));
  });

  test('no transaction that is rolled back', async () => {
    await fresh.db.knex
      .transaction(async (trx) => {
        await trx.raw("update tenants set name = 'x' where id = 'acme'");
        throw new Error('changed my mind');
      })
      .catch(() => undefined);
    expect(await told()).toEqual(new Set([]));
  });
});

describe('the name of a policy is unique across its tenant and the global ones', () => {
  const insert = (tenant: string | null, name: string) =>
    run(
      "insert into policies (tenant_id, name, effect, actions, resources, applies_to) values ($1, $2, 'deny', '{*}', '{*}', 'everyone')",
      tenant,
      name,
    );

  test('in either order, and other tenants do not matter', async () => {
    await seedTenant(fresh.db, 'other');
    await insert('acme', 'mine');
    await insert('other', 'mine');
    await insert(null, 'everywhere');
    await expect(insert(null, 'mine')).rejects.toMatchObject({ code: '23505', constraint: 'policies_by_name' });
    await expect(insert('acme', 'everywhere')).rejects.toMatchObject({ code: '23505', constraint: 'policies_by_name' });
    await expect(insert('acme', 'mine')).rejects.toMatchObject({ code: '23505', constraint: 'policies_by_name' });
  });
});
