/** Faults made for real: the running server's metrics carry the series that the alert rules read. */

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { findPromtool } from '../../scripts/lib/tools/promtool.ts';
import { type EmbeddedPostgres, startEmbedded } from '../../src/store/embedded/embedded.ts';
import { ADMIN, call, decider, done, login, makeKey, SECRET_KEY } from '../server/support/client.ts';
import { becomes, eventually } from '../server/support/eventually.ts';
import { metric, openStand, type Server, type Stand } from '../server/support/postern.ts';
import { processesOf } from '../server/support/processes.ts';
import { send } from '../support/http.ts';
import { freeAddress } from '../support/ports.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let postgres: EmbeddedPostgres;
let server: Server;
beforeAll(async () => {
  stand = await openStand();
  postgres = await startEmbedded({ dataDir: await prepareDataDir(join(stand.folder, 'remote')), durable: false });
  server = await stand.serve({
    POSTERN_DATABASE_URL: postgres.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_HTTP_LISTEN: await freeAddress(),
    POSTERN_METRICS_TENANT_LABEL: 'true',
    // No server listens there.
    POSTERN_LDAP: JSON.stringify([
      {
        name: 'corp',
        enabled: true,
        url: `ldap://${await freeAddress()}`,
        'base-dn': 'dc=corp',
        'names-without-domain': true,
      },
    ]),
  });
});
afterAll(async () => {
  await server?.stop('SIGKILL');
  await postgres?.stop();
  await stand?.close();
});

it('a server in health shows each series of a state as healthy', async () => {
  const states = [
    'postern_database_down',
    'postern_metering_alone',
    'postern_process_restarts_total',
    'postern_refresh_reuse_total',
  ];
  for (const state of states) await becomes(state, 0, () => metric(server.admin, state));
  expect(await metric(server.admin, 'postern_audit_seal_age_seconds')).toBeLessThan(60);
  expect(await metric(server.admin, 'postern_signing_key_age_seconds')).toBeLessThan(86_400);
});

it('its metrics are taken by promtool without a complaint', async () => {
  const search = await findPromtool();
  if (search.kind === 'missing') throw new Error(search.message);
  const { body: input } = await send(`http://${server.admin}`, { path: '/metrics' });
  const checked = spawnSync(search.path, ['check', 'metrics'], { input, encoding: 'utf8' });
  expect([checked.status, checked.stderr, checked.stdout]).toEqual([0, '', '']);
});

it('the quota of a tenant that has spent some of it is shown by its name', async () => {
  const token = await login(server.http);
  await done(server.http, 'POST', '/v1/iam/tenants', {
    token,
    body: { id: 'acme', name: 'Acme', quotas: { monthly_tokens: 2000 } },
  });
  const { key } = await makeKey(server.http, token, { tenant: 'acme', scopes: ['chat:*'] });
  const gate = decider(server.grpc);
  const body = JSON.stringify({ model: 'llama-3', max_tokens: 900, messages: [] });
  const headers = [['content-type', 'application/json']] as const;
  expect(await gate.decide(key, { method: 'POST', path: '/v1/chat/completions', headers, body })).toBe('allow');
  gate.close();
  await eventually(
    'the share is shown',
    async () => (await metric(server.admin, 'postern_quota_used_ratio{tenant="acme"}')) > 0.4,
  );
});

it('a directory that is down is named', async () => {
  const body = { auth_type: 'ldap', username: 'ada', password: 'any password at all' };
  expect((await call(server.http, 'POST', '/v1/auth/login', { body })).status).toBe(503);
  expect(await metric(server.admin, 'postern_directory_down{directory="corp"}')).toBe(1);
  expect(await metric(server.admin, 'postern_directory_logins_total{directory="corp",outcome="unavailable"}')).toBe(1);
});

it('a refresh token that is used by two is counted', async () => {
  const { body } = await done(server.http, 'POST', '/v1/auth/login', { body: ADMIN });
  const refresh = (token: unknown) => call(server.http, 'POST', '/v1/auth/refresh', { body: { refresh_token: token } });
  const next = await refresh(body['refresh_token']);
  await refresh(next.body['refresh_token']);
  // A successor was used, so the first is no retry of a lost answer.
  await eventually('the first is refused as stolen', async () => (await refresh(body['refresh_token'])).status === 401);
  expect(await metric(server.admin, 'postern_refresh_reuse_total')).toBeGreaterThan(0);
});

it('an API process that is killed is counted', async () => {
  const [api] = await processesOf(server.pid, 'api');
  expect(api).toBeDefined();
  process.kill(Number(api), 'SIGKILL');
  await becomes('it was replaced', 1, () => metric(server.admin, 'postern_process_restarts_total{process="api"}'));
  await eventually('the new one answers', async () => (await call(server.http, 'GET', '/v1/auth/me')).status === 401);
});

it('a database that is stopped shows at once, the change feed grows old, and undecided checks are faults', async () => {
  const { key } = await makeKey(server.http, await login(server.http));
  // As an administrator would, with the server's connections open.
  const pid = postgres.pid();
  const stopped = postgres.stop();
  process.kill(pid, 'SIGINT');
  await stopped;
  await becomes('the database is down', true, async () => (await metric(server.admin, 'postern_database_down')) >= 1);
  const gate = decider(server.grpc);
  expect(await gate.decide(key)).toBe('unavailable');
  gate.close();
  expect(await metric(server.admin, 'postern_checks_total{outcome="fault"')).toBeGreaterThan(0);
  const age = await metric(server.admin, 'postern_feed_age_seconds');
  await eventually(
    'the feed grows old',
    async () => (await metric(server.admin, 'postern_feed_age_seconds')) > age + 1,
  );
});
