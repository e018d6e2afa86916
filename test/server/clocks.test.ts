/** Two servers on one database, the clock of one machine 6 minutes behind, that of the other 6 minutes ahead. */

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { makeIssuerKey } from '../support/issuer.ts';
import { ADMIN, type Decider, decider, done, login, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SKEW_MS = 6 * 60_000;
const SKEWED = fileURLToPath(new URL('support/skewed-clock.ts', import.meta.url));

let stand: Stand;
let database: FreshDatabase;
let servers: readonly Server[] = [];
let gates: readonly Decider[] = [];

function environment(skewMs: number): NodeJS.ProcessEnv {
  return {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    NODE_OPTIONS: `--import=${SKEWED}`,
    CLOCK_SKEW_MS: String(skewMs),
  };
}

beforeAll(async () => {
  [stand, database] = await Promise.all([openStand(), freshDatabase()]);
  servers = [await stand.serve(environment(-SKEW_MS)), await stand.serve(environment(SKEW_MS))];
  gates = servers.map(({ grpc }) => decider(grpc));
});

afterAll(async () => {
  await Promise.all(gates.map((gate) => gate.close()));
  await stand?.close();
  await database?.close();
});

async function setExpiry(id: string, seconds: number): Promise<void> {
  await database.db.query({
    text: 'update api_keys set expires_at = clock_timestamp() + make_interval(secs => $2) where id = $1',
    values: [id, seconds],
  });
}

describe.each([
  [0, 'behind'],
  [1, 'ahead'],
])('server %i, whose clock is %s', (n) => {
  const server = (): Server => servers[n] ?? expect.fail('no server');
  const gate = (): Decider => gates[n] ?? expect.fail('no gate');

  it("accepts a key until it expires by the database's clock, and no longer", async () => {
    const token = await login(server().http);
    const { id, key } = await makeKey(server().http, token);
    await setExpiry(id, SKEW_MS / 2000);
    await eventually('the expiry is known', async () => (await gate().decide(key)) === 'allow');
    await setExpiry(id, 2);
    await eventually('the key has expired', async () => (await gate().decide(key)) === 'invalid_credential', 20_000);
  });

  it('accepts the tokens of both servers, at the gate and for the API', async () => {
    for (const { http } of servers) {
      const token = await login(http);
      expect(await gate().decide(token)).toBe('allow');
      expect((await done(server().http, 'GET', '/v1/iam/users', { token })).status).toBe(200);
    }
  });

  it("counts decisions in the database's minutes", async () => {
    const token = await login(server().http);
    await gate().decide(token);
    await eventually('all is counted near now', async () => {
      const [row] = await database.db.query({
        text: `select count(*)::float8 as rows, count(*) filter (where abs(extract(epoch from clock_timestamp() - minute)) > 180)::float8 as far
          from decision_counts`,
      });
      expect(row?.['far']).toBe(0);
      return Number(row?.['rows']) > 0;
    });
  });
});

it("a command on a machine with a wrong clock writes the times of the database's clock", async () => {
  const token = await login(servers[0]?.http ?? expect.fail());
  const issuer = {
    name: 'ci',
    issuer: 'https://ci.example',
    audiences: ['postern'],
    jwks: { keys: [makeIssuerKey().jwk] },
  };
  await done(servers[0]?.http ?? expect.fail(), 'POST', '/v1/iam/issuers', { token, body: issuer });
  for (const skewMs of [-SKEW_MS, SKEW_MS]) {
    const { code, stderr } = await stand.run(['issuer', 'revoke-before', 'ci'], environment(skewMs));
    expect([code, stderr]).toEqual([0, '']);
    const [row] = await database.db.query({
      text: 'select abs(extract(epoch from clock_timestamp() - revoked_before))::float8 as seconds from issuers',
    });
    expect(row?.['seconds']).toBeLessThan(SKEW_MS / 2000);
  }
});
