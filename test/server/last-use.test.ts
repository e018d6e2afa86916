/** The last use of keys: recorded by both listeners of every server, shown by all servers. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { ADMIN, call, decider, done, login, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

let stand: Stand;
let database: FreshDatabase;
let here: Server;
let there: Server;
let admin: string;

beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  const env = {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
  [here, there] = await Promise.all([stand.serve(env), stand.serve(env)]);
  admin = await login(here.http);
});

afterAll(async () => {
  await stand?.close();
  await database?.close();
});

/** The last use from the API; undefined: never. */
async function lastUse(id: string): Promise<number | undefined> {
  const { body } = await done(here.http, 'GET', `/v1/iam/api-keys/${id}`, { token: admin });
  return typeof body['last_used_at'] === 'string' ? Date.parse(body['last_used_at']) : undefined;
}

it('shows the use of a key at either door of any server, also what a server saw just before it stopped', async () => {
  const [checked, denied, managing, explained, unused] = [
    await makeKey(here.http, admin),
    await makeKey(here.http, admin, { scopes: ['rag:read'] }),
    await makeKey(here.http, admin, { scopes: ['admin:users'] }),
    await makeKey(here.http, admin),
    await makeKey(here.http, admin),
  ];
  const before = Date.now();
  const gate = decider(there.grpc);
  expect(await gate.decide(checked.key)).toBe('allow');
  expect(await gate.decide(denied.key)).toBe('insufficient_permission');
  gate.close();
  await done(here.http, 'GET', '/v1/iam/users', { token: managing.key });
  const question = { credential: explained.key, method: 'GET', path: '/v1/chat/history' };
  expect((await call(here.http, 'POST', '/v1/iam/explain', { token: admin, body: question })).status).toBe(200);

  expect((await there.stop()).code).toBe(0);
  const uses = await eventually('the use at the management API is written', async () => {
    const found = await Promise.all([lastUse(checked.id), lastUse(denied.id), lastUse(managing.id)]);
    return found.every((use) => use !== undefined) && found;
  });
  for (const use of uses) {
    expect(use).toBeGreaterThanOrEqual(before);
    expect(use).toBeLessThanOrEqual(Date.now());
  }
  expect(await lastUse(unused.id)).toBeUndefined();
  expect(await lastUse(explained.id), 'an explanation is no use').toBeUndefined();
});
