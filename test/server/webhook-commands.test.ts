/** `postern webhook`: the operator creates, tests, rotates and deletes webhooks, without a login. */

import { expect, it, onTestFinished, vi } from 'vitest';
import { postern } from '../setup/support.ts';
import { freshDatabase } from '../support/database.ts';

vi.setConfig({ testTimeout: 120_000 });

it('create, list, test, deliveries, replay, rotate and delete work on a webhook by its id', async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  await fresh.db.knex.raw(`insert into tenants (id, name) values ('acme', 'Acme')`);
  const run = (...args: readonly string[]) => postern(fresh.url, ['webhook', ...args]);
  const [made, refused] = await Promise.all([
    run('create', 'https://hooks.invalid/a', 'key.*', 'audit.*', '--tenant', 'acme'),
    run('create', 'https://10.0.0.7/a', 'key.*', '--tenant', 'acme'),
  ]);
  const [id = '', secret] = made.stdout.split('\n');
  expect([made.code, id, secret]).toEqual([0, expect.stringMatching(/^whk_/), expect.stringMatching(/^whsec_/)]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('webhooks.allowed-hosts')]);
  expect(refused.stderr.split('webhooks.allowed-hosts')).toHaveLength(2);
  const tested = await run('test', id);
  expect([tested.code, tested.stdout]).toEqual([
    1,
    expect.stringMatching(/^dlv_\w+ {2}\S+ {2}webhook\.test {2}failed/),
  ]);
  const [delivery = ''] = tested.stdout.split(' ');
  const [listed, deliveries, rotated] = await Promise.all([run('list'), run('deliveries', id), run('rotate', id)]);
  expect(listed.stdout).toBe(`${id}  acme  https://hooks.invalid/a  key.*,audit.*  enabled\n`);
  expect(deliveries.stdout).toBe(tested.stdout);
  expect(rotated.stdout).toMatch(/^whsec_/);
  expect(rotated.stdout).not.toContain(secret);
  expect((await run('replay', id, delivery)).code).toBe(0);
  expect((await run('delete', id)).code).toBe(0);
  expect(await fresh.db.query({ text: `select action, actor_type, tenant_id from audit_log order by id` })).toEqual(
    ['create', 'test', 'rotate', 'replay', 'delete'].map((verb) => ({
      action: `webhook.${verb}`,
      actor_type: 'system',
      tenant_id: 'acme',
    })),
  );
});

it('says that the server is a standby if PostgreSQL accepts no change', async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  await fresh.db.knex.raw(`insert into tenants (id, name) values ('acme', 'Acme')`);
  const [row] = await fresh.db.query({ text: 'select current_database() as name' });
  await fresh.db.knex.raw('alter database :name: set default_transaction_read_only = on', {
    name: String(row?.['name']),
  });
  const made = await postern(fresh.url, ['webhook', 'create', 'https://hooks.invalid/a', 'key.*', '--tenant', 'acme']);
  expect([made.code, made.stdout, made.stderr]).toEqual([
    1,
    '',
    'PostgreSQL answered with an error: the database cannot be used: cannot execute SELECT FOR SHARE in a read-only transaction. The server is a standby or read-only: database.url must lead to the primary. Check database.url.\n',
  ]);
});

it('create names each wrong value once', async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  await fresh.db.knex.raw(`insert into tenants (id, name) values ('acme', 'Acme')`);
  const { code, stderr } = await postern(fresh.url, [
    'webhook',
    'create',
    'ftp://a.invalid',
    'kye',
    '--tenant',
    'acme',
  ]);
  expect([code, stderr.split('`/url`').length, stderr.split('`/events/0`').length]).toEqual([1, 2, 2]);
});
