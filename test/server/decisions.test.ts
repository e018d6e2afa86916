/** The decisions of the gates of all servers, as the API of one server returns them. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { ADMIN, decider, done, login, makeKey, SECRET_KEY } from './support/client.ts';
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

it('shows every decision of every server by minute, code and route, also those of one just before it stopped', async () => {
  const [reader, stranger] = [
    await makeKey(here.http, admin),
    await makeKey(here.http, admin, { scopes: ['rag:read'] }),
  ];
  const gates = [decider(here.grpc), decider(there.grpc)];
  for (const gate of gates) {
    for (let i = 0; i < 3; i++) expect(await gate.decide(reader.key)).toBe('allow');
    expect(await gate.decide(stranger.key)).toBe('insufficient_permission');
    expect(await gate.decide('psk_of_nobody')).toBe('invalid_credential');
    gate.close();
  }
  expect((await there.stop()).code).toBe(0);
  const ask = async (query: string) =>
    (await done(here.http, 'GET', `/v1/iam/decisions?${query}`, { token: admin })).body;
  const everywhere = { allow: 6, deny: 4, fault: 0 };
  await eventually('both servers have written what they counted, of nobody known too', async () => {
    return JSON.stringify((await ask('tenant_id=*'))['total']) === JSON.stringify(everywhere);
  });
  const shown = await ask('tenant_id=default');
  expect(shown['total']).toEqual({ allow: 6, deny: 2, fault: 0 });
  const route = 'GET /v1/chat/**';
  expect(shown['data']).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ outcome: 'allow', code: 'allow', route }),
      expect.objectContaining({ outcome: 'deny', code: 'insufficient_permission', route }),
    ]),
  );
});
