/**
 * A newer program migrates the database of running servers: these go on, and the older program can be started again.
 */

import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { migrate } from '../../src/store/migrate.ts';
import { ADMIN, call, decider, login, makeKey, SECRET_KEY } from '../server/support/client.ts';
import { openStand, type Stand } from '../server/support/postern.ts';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { newerMigrations } from '../support/newer-migrations.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** A statement of each kind that the rule in docs/upgrades.md allows. */
const ADDITIVE = `-- Additive: a table, columns with a default, an index.
create table later (id text primary key);
alter table api_keys add column later text, add column later_count int not null default 0;
alter table users add column later text;
alter table tenants add column later jsonb not null default '{}';
create index api_keys_later on api_keys (later);`;
const BREAKING = `-- Breaking: a column has another name.
alter table later rename column id to name;`;

let stand: Stand;
let database: FreshDatabase;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  env = {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

it('a running server continues to decide and write after an additive migration, starts on that schema, and refuses a breaking one', async () => {
  const running = await stand.serve(env);
  const gate = decider(running.grpc);
  onTestFinished(() => gate.close());
  const admin = await login(running.http);
  const before = await makeKey(running.http, admin);
  expect(await gate.decide(before.key)).toBe('allow');

  const newer = await newerMigrations({ '9001-later.sql': ADDITIVE });
  onTestFinished(() => newer.remove());
  expect(await migrate(database.db, newer.folder)).toEqual(['9001-later.sql']);
  // Cached, loaded again, written, revoked.
  expect(await gate.decide(before.key)).toBe('allow');
  const after = await makeKey(running.http, admin);
  expect(await gate.decide(after.key)).toBe('allow');
  expect((await call(running.http, 'DELETE', `/v1/iam/api-keys/${before.id}`, { token: admin })).status).toBe(204);
  expect(await gate.decide(before.key)).toBe('invalid_credential');
  expect((await running.stop()).code).toBe(0);

  const rolledBack = await stand.serve(env);
  const again = decider(rolledBack.grpc);
  onTestFinished(() => again.close());
  expect(await again.decide(after.key)).toBe('allow');
  expect((await rolledBack.stop()).code).toBe(0);
  expect((await runCommand(['verify-audit'], env)).code).toBe(0);

  const breaking = await newerMigrations({ '9001-later.sql': ADDITIVE, '9002-later.sql': BREAKING });
  onTestFinished(() => breaking.remove());
  await migrate(database.db, breaking.folder);
  const refused = await stand.run(['serve'], env);
  expect(refused.code).toBeGreaterThan(0);
  expect(refused.stdout + refused.stderr).toContain(
    'The database is newer than this program: it has 9001-later.sql, 9002-later.sql',
  );
});
