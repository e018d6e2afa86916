import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type BootstrapParts, bootstrap, resetAdmin } from '../../src/iam/users/bootstrap.ts';
import { openDatabase } from '../../src/store/database.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson, auditOf, clear, everythingStored, PASSWORD } from './people.ts';
import { bearer, makePasswords, type Reply, type Stand, startStand } from './stand.ts';

let database: FreshDatabase;
let stand: Stand;
let parts: BootstrapParts;

beforeAll(async () => {
  database = await freshDatabase();
  stand = await startStand(database.url);
  parts = { db: database.db, passwords: await makePasswords(), now: Date.now, random: (size) => randomBytes(size) };
});
afterEach(async () => {
  await clear(database.db);
  await stand.parts.feed.catchUp();
});
afterAll(async () => {
  await stand.close();
  await database.close();
});

/** The request of `postern reset-admin` without options. */
const RESET = { email: 'admin@localhost', password: undefined, isNamed: false, create: false };
const SETTINGS = { email: 'admin@localhost', password: undefined };

async function login(email: string, password: string): Promise<Reply> {
  return await stand.post('/v1/auth/login', { email, password });
}

async function profileOf(reply: Reply): Promise<Reply> {
  await stand.parts.feed.catchUp();
  return await stand.get('/v1/auth/me', bearer(reply));
}

async function administrators(): Promise<readonly string[]> {
  const { rows } = await database.db.knex.raw<{ rows: { email: string }[] }>(
    `select u.email from users u join user_roles r on r.user_id = u.id where r.role_name = 'admin' and u.status = 'active' order by 1`,
  );
  return rows.map((row) => row.email);
}

describe('the first start', () => {
  test('creates the tenant and an administrator, returns the generated password once and stores no copy of it', async () => {
    const outcome = await bootstrap(parts, SETTINGS);
    if (outcome.kind !== 'made' || outcome.madePassword === undefined) throw new Error('no password was made');
    expect(outcome.email).toBe('admin@localhost');
    expect(outcome.madePassword).toMatch(/^([a-z2-9]{6}-){3}[a-z2-9]{6}$/);
    const reply = await login('admin@localhost', outcome.madePassword);
    expect(reply.status).toBe(200);
    const me = await profileOf(reply);
    expect(me.json).toMatchObject({ tenant_id: 'default', roles: ['admin'], permissions: ['*'], platform_admin: true });
    expect(await everythingStored(database.db)).not.toContain(outcome.madePassword);
    expect((await auditOf(database.db))[0]).toMatchObject({
      actor: 'system',
      action: 'user.bootstrap',
      tenant: 'default',
    });
  });

  test('uses the configured password, and returns none', async () => {
    expect(await bootstrap(parts, { email: 'Root@Example.com', password: PASSWORD })).toEqual({
      kind: 'made',
      email: 'root@example.com',
      madePassword: undefined,
    });
    expect((await login('root@example.com', PASSWORD)).status).toBe(200);
  });

  test('rejects a configured password that is weak, and creates no administrator', async () => {
    await expect(bootstrap(parts, { email: 'admin@localhost', password: 'admin' })).rejects.toMatchObject({
      code: 'invalid_field',
    });
    expect(await administrators()).toEqual([]);
  });

  test('of two servers at once creates one administrator, and only one server returns the password', async () => {
    const other = openDatabase({ url: database.url });
    const outcomes = await Promise.all([
      bootstrap(parts, SETTINGS),
      bootstrap({ ...parts, db: other }, SETTINGS),
      bootstrap({ ...parts, db: other }, { ...SETTINGS, email: 'other@localhost' }),
    ]);
    await other.close();
    expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(['made', 'present', 'present']);
    expect(await administrators()).toHaveLength(1);
  });

  test('creates no second administrator: an existing one stays unchanged', async () => {
    await bootstrap(parts, { ...SETTINGS, password: PASSWORD });
    expect(await bootstrap(parts, { email: 'another@localhost', password: 'a sunny afternoon in Lisbon' })).toEqual({
      kind: 'present',
    });
    expect(await administrators()).toEqual(['admin@localhost']);
    expect((await login('admin@localhost', PASSWORD)).status).toBe(200);
  });

  test('does not count administrators of a directory, or deactivated ones', async () => {
    await addPerson(database.db, { email: 'dir@example.com', source: 'ldap', roles: ['admin'] });
    await addPerson(database.db, { email: 'gone@example.com', status: 'deactivated', roles: ['admin'] });
    expect((await bootstrap(parts, SETTINGS)).kind).toBe('made');
  });
});

describe('resetting the administrator', () => {
  test('creates no second administrator: it resets the only one if no user has the configured address', async () => {
    const id = await addPerson(database.db, { email: 'boss@example.com', tenant: 'acme', roles: ['admin'] });
    const { email, tenantId, madePassword = '' } = await resetAdmin(parts, RESET);
    expect([email, tenantId]).toEqual(['boss@example.com', 'acme']);
    expect((await profileOf(await login('boss@example.com', madePassword))).json).toMatchObject({ id });
    expect(await administrators()).toHaveLength(1);
  });

  test.each([
    ['of several, none has the configured address', ['a@example.com', 'b@example.com'], false],
    ["the address that was named is no administrator's", ['a@example.com'], true],
  ])('changes nothing and names the administrators when %s', async (_when, emails, isNamed) => {
    for (const email of emails) await addPerson(database.db, { email, roles: ['admin'] });
    await addPerson(database.db, { email: 'admin@localhost', roles: ['developer'] });
    const before = await everythingStored(database.db);
    const message = await resetAdmin(parts, { ...RESET, isNamed }).catch((error: unknown) => String(error));
    expect(message).toContain(
      `The administrators are ${emails.join(', ')}. Name an administrator with --email, or create one with --create.`,
    );
    expect(await everythingStored(database.db)).toBe(before);
  });

  test('sets a new password, with create gives the role back, ends the sessions and names the tenant', async () => {
    const id = await addPerson(database.db, { email: 'admin@localhost', tenant: 'acme', roles: ['developer'] });
    const before = await login('admin@localhost', PASSWORD);
    const { madePassword = '', tenantId } = await resetAdmin(parts, { ...RESET, create: true });
    expect(tenantId).toBe('acme');
    expect((await login('admin@localhost', PASSWORD)).status).toBe(401);
    const reply = await login('admin@localhost', madePassword);
    expect(reply.status).toBe(200);
    const me = await profileOf(reply);
    expect(me.json).toMatchObject({ id, tenant_id: 'acme', roles: ['admin', 'developer'], platform_admin: true });
    expect((await profileOf(before)).status).toBe(401);
    expect((await auditOf(database.db)).find((line) => line.action === 'user.reset_admin')).toMatchObject({
      actor: 'system',
      target: id,
    });
  });

  test.each([
    [
      'a deactivated user',
      /belongs to a deactivated user of the tenant acme/,
      `update users set status = 'deactivated'`,
    ],
    ['a user of a suspended tenant', /tenant acme, which is suspended/, `update tenants set status = 'suspended'`],
    [
      'a user of a directory',
      /belongs to a user of a directory/,
      `update users set source = 'ldap', password_hash = null`,
    ],
  ])(
    'rejects %s, which could not log in, and names the command that creates another administrator',
    async (_who, reason, state) => {
      await addPerson(database.db, { email: 'admin@localhost', tenant: 'acme', roles: ['admin'] });
      await database.db.knex.raw(state);
      const before = await everythingStored(database.db);
      const message = await resetAdmin(parts, RESET).catch((error: unknown) => String(error));
      expect(message).toMatch(reason);
      expect(message).toContain('Run the command with --create --email and an email address that no user has');
      expect(await everythingStored(database.db)).toBe(before);
      const { madePassword = '', tenantId } = await resetAdmin(parts, {
        ...RESET,
        create: true,
        email: 'way-in@localhost',
      });
      expect(tenantId).toBe('default');
      const reply = await login('way-in@localhost', madePassword);
      expect((await profileOf(reply)).json).toMatchObject({ tenant_id: 'default', platform_admin: true });
    },
  );

  test('creates one with the create option if there is none, and unblocks the logins of its address', async () => {
    for (let i = 0; i < 11; i++) await login('root@localhost', 'a wrong guess');
    expect((await login('root@localhost', PASSWORD)).status).toBe(429);
    expect(await resetAdmin(parts, { ...RESET, create: true, email: 'root@localhost', password: PASSWORD })).toEqual({
      email: 'root@localhost',
      tenantId: 'default',
      madePassword: undefined,
    });
    expect((await login('root@localhost', PASSWORD)).status).toBe(200);
  });

  test("does not take over a directory's user", async () => {
    await addPerson(database.db, { email: 'admin@localhost', source: 'ldap', hash: null });
    await expect(resetAdmin(parts, { ...RESET, create: true })).rejects.toMatchObject({ code: 'already_exists' });
    expect(await administrators()).toEqual([]);
  });
});
