/**
 * Uses of keys and decisions that the gates and the APIs of two servers record, as the API of one of them returns them. The other
 * server, a gate, stops just after them.
 */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { ADMIN, call, decider, done, login, type MadeKey, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { type GateServer, openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

interface Keys {
  readonly checked: MadeKey;
  readonly denied: MadeKey;
  readonly managing: MadeKey;
  readonly explained: MadeKey;
  readonly unused: MadeKey;
}

let stand: Stand;
let database: FreshDatabase;
let here: Server;
let admin: string;
let keys: Keys;
let usedFromMs: number;

beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  const env = {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
  let there: GateServer;
  [here, there] = await Promise.all([stand.serve(env), stand.serveGate(env)]);
  admin = await login(here.http);
  keys = {
    checked: await makeKey(here.http, admin),
    denied: await makeKey(here.http, admin, { scopes: ['rag:read'] }),
    managing: await makeKey(here.http, admin, { scopes: ['admin:users'] }),
    explained: await makeKey(here.http, admin),
    unused: await makeKey(here.http, admin),
  };
  const [reader, stranger] = [
    await makeKey(here.http, admin),
    await makeKey(here.http, admin, { scopes: ['rag:read'] }),
  ];
  usedFromMs = Date.now();
  for (const { grpc } of [here, there]) {
    const gate = decider(grpc);
    for (let i = 0; i < 3; i++) expect(await gate.decide(reader.key)).toBe('allow');
    expect(await gate.decide(stranger.key)).toBe('insufficient_permission');
    expect(await gate.decide('psk_of_nobody')).toBe('invalid_credential');
    gate.close();
  }
  const gate = decider(there.grpc);
  expect(await gate.decide(keys.checked.key)).toBe('allow');
  expect(await gate.decide(keys.denied.key)).toBe('insufficient_permission');
  gate.close();
  await done(here.http, 'GET', '/v1/iam/users', { token: keys.managing.key });
  const question = { credential: keys.explained.key, method: 'GET', path: '/v1/chat/history' };
  expect((await call(here.http, 'POST', '/v1/iam/explain', { token: admin, body: question })).status).toBe(200);
  expect((await there.stop()).code).toBe(0);
});

afterAll(async () => {
  await stand?.close();
  await database?.close();
});

/** The last use from the API; undefined: never. */
async function lastUse({ id }: MadeKey): Promise<number | undefined> {
  const { body } = await done(here.http, 'GET', `/v1/iam/api-keys/${id}`, { token: admin });
  return typeof body['last_used_at'] === 'string' ? Date.parse(body['last_used_at']) : undefined;
}

it('the API shows the last use of a key at either listener of any server, also one just before that server stopped', async () => {
  const uses = await eventually('the uses are written', async () => {
    const found = await Promise.all([lastUse(keys.checked), lastUse(keys.denied), lastUse(keys.managing)]);
    return found.every((use) => use !== undefined) && found;
  });
  for (const use of uses) {
    expect(use).toBeGreaterThanOrEqual(usedFromMs);
    expect(use).toBeLessThanOrEqual(Date.now());
  }
  expect(await lastUse(keys.unused)).toBeUndefined();
  expect(await lastUse(keys.explained), 'an explanation is no use').toBeUndefined();
});

it('the API shows every decision of every server by minute, code and route, also those just before that server stopped', async () => {
  const ask = async (query: string) =>
    (await done(here.http, 'GET', `/v1/iam/decisions?${query}`, { token: admin })).body;
  await eventually('both servers have written the decisions that they counted, also without a principal', async () => {
    return JSON.stringify((await ask('tenant_id=*'))['total']) === JSON.stringify({ allow: 7, deny: 5, fault: 0 });
  });
  const shown = await ask('tenant_id=default');
  expect(shown['total']).toEqual({ allow: 7, deny: 3, fault: 0 });
  const route = 'GET /v1/chat/**';
  expect(shown['data']).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ outcome: 'allow', code: 'allow', route }),
      expect.objectContaining({ outcome: 'deny', code: 'insufficient_permission', route }),
    ]),
  );
});
