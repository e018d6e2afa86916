/**
 * The database of a server is gone for a while: hung, with every connection open and silent, or stopped, with every
 * connection refused.
 */

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import { type EmbeddedPostgres, startEmbedded } from '../../src/store/embedded/embedded.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';
import {
  ADMIN,
  call,
  type Decider,
  decider,
  done,
  login,
  makeKey,
  makeUser,
  SECRET_KEY,
  tryLogin,
} from './support/client.ts';
import { becomes, eventually } from './support/eventually.ts';
import { isReady, metric, openStand, readiness, type Server, type Stand } from './support/postern.ts';
import { freeze, thaw } from './support/postgres.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const SERVING = 1;
const NOT_SERVING = 2;
/** Well made, and of no installation. */
const UNKNOWN_KEY = makeApiKey(randomBytes).text;

let stand: Stand;
let dataDir: string;
let postgres: EmbeddedPostgres;
let env: NodeJS.ProcessEnv;

async function startPostgres(): Promise<EmbeddedPostgres> {
  return startEmbedded({ dataDir, durable: false });
}

beforeAll(async () => {
  stand = await openStand();
  dataDir = await prepareDataDir(join(stand.folder, 'remote'));
  postgres = await startPostgres();
  env = {
    POSTERN_DATABASE_URL: postgres.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
});
afterAll(async () => {
  await postgres?.stop();
  await stand?.close();
});

interface Outage {
  readonly kind: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

const hung: Outage = {
  kind: 'hung',
  begin: () => freeze(postgres.pid()),
  end: () => thaw(postgres.pid()),
};

const stopped: Outage = {
  kind: 'stopped',
  // Stops it as an administrator would, while the server's connections are open.
  async begin() {
    const pid = postgres.pid();
    const watched = postgres.stop();
    process.kill(pid, 'SIGINT');
    await watched;
  },
  async end() {
    postgres = await startPostgres();
  },
};

const outages = [hung, stopped];

/** Begins it, and makes sure that it ends with the test. */
async function lose({ begin, end }: Outage): Promise<() => Promise<void>> {
  let over: Promise<void> | undefined;
  const back = (): Promise<void> => {
    over ??= end();
    return over;
  };
  onTestFinished(back);
  await begin();
  return back;
}

describe('a server that loses its database', () => {
  let server: Server;
  let gate: Decider;
  let admin: string;

  beforeAll(async () => {
    server = await stand.serve(env);
    gate = decider(server.grpc);
    admin = await login(server.http);
  });
  afterAll(() => gate?.close());

  const warnsOfLimits = async (): Promise<boolean> =>
    (await readiness(server.admin)).warnings.some((warning) => warning.startsWith('metering: the database'));

  it.each(outages)(
    'decides requests of known callers while the database is $kind, and answers 503 and no denial to everything else; no acknowledged write is lost, and it all comes back',
    async (outage) => {
      const warm = await makeKey(server.http, admin);
      const cold = await makeKey(server.http, admin);
      const person = await makeUser(server.http, admin);
      const pair = (
        await done(server.http, 'POST', '/v1/auth/login', { body: { email: person.email, password: person.password } })
      ).body;
      const token = String(pair['access_token']);
      expect(await gate.decide(warm.key)).toBe('allow');
      expect(await gate.decide(token)).toBe('allow');

      const back = await lose(outage);

      expect(await gate.decide(warm.key)).toBe('allow');
      expect(await gate.decide(token)).toBe('allow');
      expect(await gate.decide(warm.key, { path: '/v1/models' })).toBe('insufficient_permission');
      // A text that cannot be a credential is rejected by its form.
      expect(await gate.decide(warm.key.slice(0, -1))).toBe('invalid_credential');
      const asked = await Promise.all([
        gate.decide(cold.key),
        call(server.http, 'POST', '/v1/iam/api-keys', {
          token: admin,
          body: { description: 'too late', scopes: ['chat:read'], expires_in_days: 1 },
        }),
        call(server.http, 'DELETE', `/v1/iam/api-keys/${warm.id}`, { token: admin }),
        call(server.http, 'GET', '/v1/iam/users', { token: admin }),
        call(server.http, 'GET', '/v1/iam/users', { token: cold.key }),
        tryLogin(server.http, person),
        tryLogin(server.http, { ...person, password: 'not the password of anybody' }),
        tryLogin(server.http, { email: 'nobody@example.com', password: 'not the password of anybody' }),
        call(server.http, 'POST', '/v1/auth/refresh', { body: { refresh_token: pair['refresh_token'] } }),
      ]);
      const [coldVerdict, ...replies] = asked;
      expect(coldVerdict).toBe('unavailable');
      for (const { status, body, headers } of replies) {
        expect({ status, code: body['code'] }).toEqual({ status: 503, code: 'unavailable' });
        expect(headers['retry-after']).toBeDefined();
      }
      expect(await readiness(server.admin)).toMatchObject({ status: 200, reasons: [] });
      await becomes('readiness warns of the limits', true, warnsOfLimits);
      expect(await gate.health('')).toBe(SERVING);
      // Some seconds have gone by in silence: requests of known callers are still decided.
      expect(await gate.decide(warm.key)).toBe('allow');

      await back();

      await becomes('the cold key is decided', 'allow', () => gate.decide(cold.key));
      await becomes('readiness warns no more', false, warnsOfLimits);
      await eventually('logging in works', async () => (await tryLogin(server.http, person)).status === 200);
      await eventually('a write is acknowledged', async () => {
        const made = { description: 'made after', scopes: ['chat:read'], expires_in_days: 1 };
        return (await call(server.http, 'POST', '/v1/iam/api-keys', { token: admin, body: made })).status === 201;
      });
      for (const { id } of [cold, person]) {
        const kind = id === person.id ? 'users' : 'api-keys';
        expect((await call(server.http, 'GET', `/v1/iam/${kind}/${id}`, { token: admin })).status).toBe(200);
      }
      // The attempts, and the one at an unknown account, used up no limit.
      const refreshed = await call(server.http, 'POST', '/v1/auth/refresh', {
        body: { refresh_token: pair['refresh_token'] },
      });
      expect(refreshed.status).toBe(200);
      await done(server.http, 'DELETE', `/v1/iam/api-keys/${warm.id}`, { token: admin });
      expect(await gate.decide(warm.key)).toBe('invalid_credential');
      expect(server.stderr()).toBe('');
    },
  );

  it('exits 0 after SIGTERM while the database does not answer', async () => {
    await lose(hung);
    const asked = gate.decide(UNKNOWN_KEY);
    await eventually(
      'the check waits',
      async () => (await metric(server.admin, 'postern_cache_in_flight{kind="waiting"}')) === 1,
    );
    const { code, stderr } = await server.stop();
    expect([code, stderr]).toEqual([0, '']);
    expect(await asked).toBe('unavailable');
  });
});

describe('past cache.max-staleness', () => {
  let server: Server;
  let gate: Decider;
  beforeAll(async () => {
    server = await stand.serve({ ...env, POSTERN_CACHE_MAX_STALENESS: '2s' });
    gate = decider(server.grpc);
  });
  afterAll(async () => {
    gate?.close();
    expect((await server.stop()).code).toBe(0);
  });

  it.each(outages)(
    'with the database $kind nothing known is trusted and health says so; when it is back all is well',
    async (outage) => {
      const admin = await login(server.http);
      const { key } = await makeKey(server.http, admin);
      expect(await gate.decide(key)).toBe('allow');
      await becomes('health says so', SERVING, () => gate.health(''));

      const back = await lose(outage);

      await becomes('a known key is no longer trusted', 'unavailable', () => gate.decide(key));
      await becomes('readiness is over', 503, async () => (await readiness(server.admin)).status);
      expect((await readiness(server.admin)).reasons).toEqual([
        expect.stringMatching(/^change feed: last read \d+ s ago/),
      ]);
      await becomes('health says so', NOT_SERVING, () => gate.health(''));
      expect(await gate.health('envoy.service.auth.v3.Authorization')).toBe(NOT_SERVING);
      // A text that cannot be a credential is rejected by its form.
      expect(await gate.decide(key.slice(0, -1))).toBe('invalid_credential');

      await back();

      await becomes('it is decided again', 'allow', () => gate.decide(key));
      await eventually('it is ready again', () => isReady(server.admin));
      await becomes('health says so', SERVING, () => gate.health(''));
    },
  );
});

describe('at the start', () => {
  it('a database that cannot be reached ends it with one sentence', async () => {
    const url = 'postgresql://postern:not-for-anybodys-eyes@127.0.0.1:1/postern';
    const { code, stdout, stderr } = await stand.run(['serve'], { ...env, POSTERN_DATABASE_URL: url });
    expect(code).toBe(1);
    expect(stderr).toBe(
      'The database did not answer: the database cannot be used: connect ECONNREFUSED 127.0.0.1:1. Check database.url and that PostgreSQL runs.\n',
    );
    expect(stderr.trimEnd()).not.toContain('\n');
    expect(stdout + stderr).not.toContain('not-for-anybodys-eyes');
  });

  it('a database that does not answer ends it as well', async () => {
    await lose(hung);
    const { code, stderr } = await stand.run(['serve'], env);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^The database did not answer: .*database\.url.*\n$/);
    expect(stderr.trimEnd()).not.toContain('\n');
  });
});

describe('a command', () => {
  it('whose statement loses its connection reports the cause without the statement', async () => {
    const [lock, observer] = [1, 2].map(() => new pg.Client({ connectionString: postgres.url }));
    if (lock === undefined || observer === undefined) throw new Error('a connection is missing');
    for (const client of [lock, observer]) {
      // Both connections end with that of the command.
      client.on('error', () => undefined);
      await client.connect();
    }
    await lock.query('begin; lock table policies');
    const exported = stand.run(['export'], env);
    const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%policies%'`;
    let backend: number | undefined;
    await eventually('the command waits for the lock', async () => {
      backend = (await observer.query(waiting)).rows[0]?.pid;
      return backend !== undefined;
    });
    process.kill(backend ?? expect.fail(), 'SIGKILL');
    const { code, stderr } = await exported;
    expect(code).toBe(1);
    expect(stderr).toBe(
      'The database did not answer: the database cannot be used: Connection terminated unexpectedly. Check database.url and that PostgreSQL runs.\n',
    );
  });
});
