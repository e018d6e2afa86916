/**
 * An installation whose migrations run as one role of the database and whose servers run as another, which cannot
 * change the schema.
 */

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RECENT_DECISIONS_UPKEEP, tidyUp } from '../../src/iam/auth/upkeep.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { migrate, migratedElsewhere } from '../../src/store/migrate.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { newerMigrations } from '../support/newer-migrations.ts';
import { ADMIN, call, decider, done, login, makeKey, makeUser, SECRET_KEY, tryLogin } from './support/client.ts';
import { becomes, eventually } from './support/eventually.ts';
import { metric, openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

/** A name that needs quotes in SQL. */
const SUFFIX = `Role-${randomBytes(4).toString('hex')}`;
const OWNER = `owner ${SUFFIX}`;
const SERVERS = `servers ${SUFFIX}`;

let stand: Stand;
let fresh: FreshDatabase;
let server: Server;
let asServer: Database;
let waited: boolean;

function urlOf(role: string): string {
  return fresh.url.replace('postern@', `${encodeURIComponent(role)}@`);
}

function envOf(role: string): NodeJS.ProcessEnv {
  return {
    POSTERN_DATABASE_URL: urlOf(role),
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
}

beforeAll(async () => {
  stand = await openStand();
  fresh = await freshDatabase('');
  await fresh.db.knex.raw('create role ?? login', [OWNER]);
  await fresh.db.knex.raw('create role ?? login', [SERVERS]);
  await fresh.db.knex.raw('alter database ?? owner to ??', [String(fresh.db.newClient().database), OWNER]);
  asServer = openDatabase({ url: urlOf(SERVERS) });
  // Before the migration, as pods start beside the Job.
  const starting = stand.serve({ ...envOf(SERVERS), POSTERN_DATABASE_MIGRATE: 'false' });
  const connected = await Promise.race([
    starting.then(() => 'ready' as const),
    eventually('the server asks for the schema', async () => {
      const rows = await fresh.db.query({ text: 'select from pg_stat_activity where usename = $1', values: [SERVERS] });
      return rows.length > 0 && ('connected' as const);
    }),
  ]);
  waited = connected === 'connected';
  const migrated = await stand.run(['migrate', '--grant-to', SERVERS], envOf(OWNER));
  expect([migrated.stderr, migrated.code]).toEqual(['', 0]);
  server = await starting;
});
afterAll(async () => {
  await server?.stop('SIGKILL');
  await asServer?.close();
  await fresh?.close();
  await stand?.close();
});

describe('a server whose role may not change the schema', () => {
  it('waits until the migration has run and its rights are granted, and says so', () => {
    expect(waited).toBe(true);
    expect(server.stdout()).toContain('waiting until postern migrate has migrated the database');
  });

  it('serves logins, changes, decisions and revocations, and listens for changes', async () => {
    const token = await login(server.http);
    const user = await makeUser(server.http, token);
    expect((await tryLogin(server.http, user)).status).toBe(200);
    await done(server.http, 'POST', '/v1/iam/tenants', {
      token,
      body: { id: 'acme', name: 'Acme', quotas: { monthly_tokens: 9000 } },
    });
    const { id, key } = await makeKey(server.http, token, { tenant: 'acme', scopes: ['chat:*'] });
    const gate = decider(server.grpc);
    onTestFinished(() => gate.close());
    const chat = {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: [['content-type', 'application/json']] as const,
      body: JSON.stringify({ model: 'llama-3', max_tokens: 900, messages: [] }),
    };
    expect(await gate.decide(key, chat)).toBe('allow');
    await done(server.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token, tenant: 'acme' });
    expect(await gate.decide(key, chat)).toBe('invalid_credential');
    expect((await call(server.http, 'GET', '/v1/iam/audit', { token })).status).toBe(200);
    const listening = await fresh.db.query({
      text: "select from pg_stat_activity where usename = $1 and query ilike 'listen %'",
      values: [SERVERS],
    });
    expect(listening.length).toBeGreaterThan(0);
  });

  it('seals the audit log, which the owner of the schema verifies, and fails no statement', async () => {
    await becomes(
      'the log is sealed',
      true,
      async () => (await metric(server.admin, 'postern_audit_seal_age_seconds')) < 5,
    );
    const verified = await stand.run(['verify-audit'], envOf(SERVERS));
    expect([verified.stderr, verified.code]).toEqual(['', 0]);
    expect(server.stdout() + server.stderr()).not.toContain('permission denied');
  });

  it('removes expired rows, which no statement of the upkeep is denied', async () => {
    await expect(tidyUp(asServer)).resolves.toBeGreaterThanOrEqual(0);
    await expect(tidyUp(asServer, undefined, RECENT_DECISIONS_UPKEEP)).resolves.toBeGreaterThanOrEqual(0);
  });

  it('starts at once when the schema is ready', async () => {
    const second = await stand.serveApi({ ...envOf(SERVERS), POSTERN_DATABASE_MIGRATE: 'false' });
    expect(second.stdout()).not.toContain('waiting until');
    expect((await second.stop()).code).toBe(0);
  });

  it('has all rights on rows and sequences, reads the record of migrations, and may call each function', async () => {
    const lacking = await asServer.query({
      text: `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
          and not (has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert') and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete'))
        union all select seqrelid::regclass::text from pg_sequence where not has_sequence_privilege(seqrelid, 'usage')
        union all select proname from pg_proc where pronamespace = 'public'::regnamespace and not has_function_privilege(oid, 'execute')
        order by name`,
    });
    expect(lacking).toEqual([{ name: 'postern_migrations' }, { name: 'postern_migrations_lock' }]);
    expect((await asServer.query({ text: 'select name from postern_migrations' })).length).toBeGreaterThan(10);
  });

  it.each([
    'create table more (id int)',
    'alter table users add column more int',
    'alter table audit_log disable trigger all',
    'create index more on users (id)',
    'drop table users',
    'truncate users',
    'create or replace function feed_position() returns bigint language sql stable as $$ select 1::bigint $$',
    'drop function feed_position()',
    "insert into postern_migrations (name, batch) values ('9999-more.sql', 9)",
    'delete from postern_migrations',
    'create schema more',
  ])('cannot run: %s', async (text) => {
    await expect(asServer.query({ text })).rejects.toMatchObject({ code: '42501' });
  });

  it('may use the tables, sequences and functions of a later migration from its commit on', async () => {
    const newer = await newerMigrations({
      '9001-more.sql': `-- Additive: one table more.
        create table more (id bigserial primary key, text text);
        create function more_rows() returns bigint language sql as $$ select count(*) from more $$;
        revoke execute on function more_rows() from public;`,
    });
    onTestFinished(() => newer.remove());
    const asOwner = openDatabase({ url: urlOf(OWNER) });
    onTestFinished(() => asOwner.close());
    // Without a later grant, so only the default privileges apply.
    expect(await migrate(asOwner, newer.folder)).toEqual(['9001-more.sql']);
    await asServer.query({ text: "insert into more (text) values ('a')" });
    expect(await asServer.query({ text: 'select more_rows()::int as rows' })).toEqual([{ rows: 1 }]);
  });
});

it('a migration for a role that does not exist names it and exits 1', async () => {
  const failed = await stand.run(['migrate', '--grant-to', 'nobody'], envOf(OWNER));
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain('role "nobody" does not exist\n');
});

async function emptyDatabase(): Promise<FreshDatabase> {
  const empty = await freshDatabase('');
  onTestFinished(() => empty.close());
  return empty;
}

it('a server waits for its rights too, if the migration has run and they are not granted yet', async () => {
  const { url, db } = await emptyDatabase();
  await migrate(db);
  const asServers = openDatabase({ url: url.replace('postern@', `${encodeURIComponent(SERVERS)}@`) });
  onTestFinished(() => asServers.close());
  const { promise: waits, resolve } = Promise.withResolvers<void>();
  const ready = migratedElsewhere(asServers, resolve);
  await waits;
  await migrate(db, undefined, SERVERS);
  await ready;
});

describe('a server that is not ready to serve yet ends at SIGTERM', () => {
  it('while it waits for the migration', async () => {
    const { url } = await emptyDatabase();
    const env = { POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEY: SECRET_KEY, POSTERN_DATABASE_MIGRATE: 'false' };
    const waiting = stand.start(['serve'], env);
    await eventually('it waits', async () => waiting.stdout().includes('waiting until'));
    expect((await waiting.stop()).code).toBe(0);
  });

  it('while another server migrates', async () => {
    const { url, db } = await emptyDatabase();
    const other = db.newClient();
    await other.connect();
    onTestFinished(() => other.end());
    await other.query('select pg_advisory_lock(726543481)');
    const waiting = stand.start(['serve'], { POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEY: SECRET_KEY });
    await eventually('it waits for the lock', async () => {
      const locks = await db.query({
        text: `select from pg_locks join pg_database on pg_database.oid = pg_locks.database
          where datname = current_database() and locktype = 'advisory' and not granted`,
      });
      return locks.length > 0;
    });
    expect((await waiting.stop()).code).toBe(0);
  });
});
