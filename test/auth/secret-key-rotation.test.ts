/**
 * The installation changes its secret-key: all data that the former key sealed stays readable, and the former key is
 * not valid afterwards.
 */

import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openClientSecret } from '../../src/iam/issuers/client-secret.ts';
import { ADMIN, call, decider, done, login, makeKey } from '../server/support/client.ts';
import { logLines, openStand, type Server, type Stand } from '../server/support/postern.ts';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

const FORMER = 'the former secret key of this installation';
const NEW = 'the new secret key of this installation, longer';

let stand: Stand;
let database: FreshDatabase;
let common: NodeJS.ProcessEnv;

beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  common = { POSTERN_DATABASE_URL: database.url, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password };
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

const withFormer = () => ({ ...common, POSTERN_SECRET_KEY: FORMER });
const withBoth = () => ({ ...common, POSTERN_SECRET_KEY: NEW, POSTERN_SECRET_KEY_PREVIOUS: FORMER });
const withNew = () => ({ ...common, POSTERN_SECRET_KEY: NEW });

async function session(server: Server): Promise<{ readonly access: string; readonly refresh: string }> {
  const { body } = await done(server.http, 'POST', '/v1/auth/login', { body: { ...ADMIN } });
  return { access: String(body['access_token']), refresh: String(body['refresh_token']) };
}

const refreshed = async (server: Server, token: string): Promise<string> =>
  String(
    (await done(server.http, 'POST', '/v1/auth/refresh', { body: { refresh_token: token } })).body['refresh_token'],
  );

async function decision(server: Server, credential: string): Promise<string> {
  const gate = decider(server.grpc);
  return gate.decide(credential).finally(() => gate.close());
}

const sealed = async (): Promise<void> => {
  await expect
    .poll(async () => (await database.db.knex.raw('select count(*)::int as n from audit_unsealed')).rows[0].n)
    .toBe(0);
};

it('changes secret-key by two rolling restarts and a command: tokens, sessions, keys and the audit chain stay valid, and the former key ends', async () => {
  const old = await stand.serve(withFormer());
  const { access, refresh } = await session(old);
  const { key } = await makeKey(old.http, await login(old.http));
  const sso = { client_id: 'console', client_secret: 'the secret of a client', label: 'Log in' };
  const issuer = { name: 'keycloak', issuer: 'https://127.0.0.1:1', audiences: ['postern'], users: {}, sso };
  await done(old.http, 'POST', '/v1/iam/issuers', { token: access, body: issuer });

  // The first restart: one server of each kind at once, both on the former key.
  const both = await stand.serve(withBoth());
  expect(await decision(both, access)).toBe('allow');
  const fresh = await session(both);
  expect(await decision(old, fresh.access)).toBe('allow');
  const second = await refreshed(both, refresh);
  expect((await old.stop()).code).toBe(0);

  const rotated = await runCommand(['rotate-secret-key', '--yes'], withBoth());
  expect(rotated.stdout).toContain('The database now uses the new secret-key.');
  expect(rotated.stdout).toContain(
    'Re-sealed: 1 signing keys, 1 client secrets of issuers, the head of the audit log.',
  );

  // A server that was started before the command writes on under the former key; one started after it, under the new.
  const after = await stand.serve(withBoth());
  const lost = await refreshed(both, second);
  expect(await refreshed(after, second)).toBe(lost);
  await makeKey(both.http, fresh.access);
  await sealed();
  expect(await decision(after, access)).toBe('allow');
  expect((await both.stop()).code).toBe(0);
  await makeKey(after.http, fresh.access);
  await sealed();
  expect(
    logLines(after.stdout()).filter(({ msg }) => String(msg).includes('chain of the audit log is broken')),
  ).toEqual([]);
  expect((await runCommand(['verify-audit'], withBoth())).stdout).toContain('The chain is intact.');

  const { rows: sealedSecrets } = await database.db.knex.raw('select id, sso_secret_sealed as sealed from issuers');
  const [{ id, sealed: secret }] = sealedSecrets;
  expect([FORMER, NEW].map((secretKey) => openClientSecret({ secretKey }, id, secret))).toEqual([
    undefined,
    sso.client_secret,
  ]);

  const again = await runCommand(['rotate-secret-key', '--yes'], withBoth());
  expect(again.stdout).toContain('remove secret-key-previous from every server');
  expect((await after.stop()).code).toBe(0);

  const last = await stand.serve(withNew());
  expect(await decision(last, access)).toBe('allow');
  expect(await decision(last, key)).toBe('allow');
  await refreshed(last, lost);
  expect((await call(last.http, 'POST', '/v1/auth/login', { body: { ...ADMIN } })).status).toBe(200);
  await sealed();
  const verified = await runCommand(['verify-audit'], withNew());
  expect(verified.stdout).toContain('The chain is intact.');

  const refused = await stand.run(['serve'], withFormer());
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^secret-key is not the key with which this database was set up.*\n$/);
  expect(refused.stdout).not.toContain('"ready"');

  // A seal that only the former key could forge, from the time of that key.
  await last.stop();
  const seal = await database.db.knex.raw('select seq from audit_seals order by seq limit 1');
  await database.db.knex.raw('update audit_seals set hash = :hash where seq = :seq', {
    seq: seal.rows[0].seq,
    hash: createHmac('sha256', FORMER).update('forged').digest(),
  });
  expect((await runCommand(['verify-audit'], withNew())).stdout).toContain('The chain is broken');
});

it('the command refuses a database of neither key, and changes nothing without secret-key-previous', async () => {
  const other = { ...common, POSTERN_SECRET_KEY: `${NEW} other`, POSTERN_SECRET_KEY_PREVIOUS: FORMER };
  const refused = await runCommand(['rotate-secret-key', '--yes'], other);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('uses neither secret-key nor secret-key-previous'),
  ]);
  expect((await runCommand(['rotate-secret-key', '--yes'], withNew())).code).toBe(2);
});
