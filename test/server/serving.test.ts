/**
 * A server from its start to its end: readiness, the requests that it completes during a stop, and several processes as
 * one server.
 */

import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { connectTo, statusOf } from '../extauthz/support/client.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { freeAddress } from '../support/ports.ts';
import { ADMIN, call, type Decider, decider, login, makeKey, SECRET_KEY } from './support/client.ts';
import { becomes, eventually } from './support/eventually.ts';
import { isReady, metric, openStand, readiness, type Server, type Stand } from './support/postern.ts';
import { childrenOf, isRunning, processesOf } from './support/processes.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SERVING = 1;
const NOT_SERVING = 2;

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

function gateAt(grpc: string): Decider {
  const gate = decider(grpc);
  onTestFinished(() => gate.close());
  return gate;
}

describe('a start', () => {
  it('is never SERVING over gRPC before the server can decide; a reader that closes its end of the output does not stop it', async () => {
    const [http, grpc, admin] = [await freeAddress(), await freeAddress(), await freeAddress()];
    const starting = stand.start(['serve'], {
      ...env,
      POSTERN_HTTP_LISTEN: http,
      POSTERN_GRPC_LISTEN: grpc,
      POSTERN_ADMIN_LISTEN: admin,
    });
    starting.deafen();
    const seen = new Set<number>();
    await eventually('it serves', async () => {
      const client = connectTo(grpc);
      const status = await client.health('').finally(() => client.close());
      seen.add(status);
      return status === SERVING;
    });
    await becomes('the server is ready', 200, async () => (await readiness(admin)).status);
    expect([...seen].filter((status) => status !== SERVING && status !== NOT_SERVING)).toEqual([]);
    expect((await call(http, 'GET', '/v1/auth/me')).status).toBe(401);
    expect((await starting.stop()).code).toBe(0);
  });
});

describe('a stop', () => {
  it('it is not ready at once, finishes what is under way, does not wait for clients that only hold a connection or send half a request, and exits 0', async () => {
    const server = await stand.serve(env);
    await holdConnections(server);
    const admin = await login(server.http);
    const { key } = await makeKey(server.http, admin);
    const gate = gateAt(server.grpc);
    const told: number[] = [];
    const watch = gate.watch('').on('data', (answer: Buffer) => told.push(statusOf(answer)));
    watch.on('error', () => undefined);
    await eventually('the watch begins', async () => told.length > 0);

    // Held back in the database, so that they are under way until it is let go.
    const lock = database.db.newClient();
    await lock.connect();
    onTestFinished(() => lock.end());
    await lock.query('begin');
    await lock.query('lock table api_keys in access exclusive mode');
    const check = gate.decide(key);
    const write = call(server.http, 'POST', '/v1/iam/api-keys', {
      token: admin,
      body: { description: 'made while stopping', scopes: ['chat:read'], expires_in_days: 1 },
    });
    await eventually('both are under way', async () => {
      const waiting =
        'select 1 from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())';
      return (await database.db.query({ text: waiting })).length === 2;
    });
    server.signal('SIGTERM');
    await Promise.all([
      eventually('the watch is told', async () => told.at(-1) === NOT_SERVING),
      becomes('it is not ready', 503, async () => (await readiness(server.admin)).status),
    ]);
    await lock.query('rollback');

    expect(await check).toBe('allow');
    expect((await write).status).toBe(201);
    // A supervisor gives half a minute before it kills.
    await eventually('it has ended', async () => !(await isRunning(server.pid)), 20_000);
    const { code, stderr } = await server.finished;
    expect([code, stderr]).toEqual([0, '']);
    expect(told).toEqual([SERVING, NOT_SERVING]);
  });

  it('with a notice, the server still decides, also on new connections, while its health reports NOT_SERVING, and its API closes each connection with its answer', async () => {
    const server = await stand.serve({ ...env, POSTERN_DRAIN_NOTICE: '5s' });
    const { key } = await makeKey(server.http, await login(server.http));
    const askApi = async (): Promise<readonly [number, string | null]> => {
      const answer = await fetch(`http://${server.http}/.well-known/jwks.json`);
      await answer.arrayBuffer();
      return [answer.status, answer.headers.get('connection')];
    };
    expect(await askApi()).toEqual([200, 'keep-alive']);
    const told: number[] = [];
    const watch = gateAt(server.grpc)
      .watch('')
      .on('data', (answer: Buffer) => told.push(statusOf(answer)));
    watch.on('error', () => undefined);
    await eventually('the watch begins', async () => told.length > 0);
    server.signal('SIGTERM');
    await eventually('the watch is told', async () => told.at(-1) === NOT_SERVING);
    expect(await gateAt(server.grpc).decide(key)).toBe('allow');
    // A proxy that keeps its connections has none left when the listener closes.
    await becomes('the API ends its connections', 'close', async () => (await askApi())[1] ?? '');
    expect(await askApi()).toEqual([200, 'close']);
    expect((await server.finished).code).toBe(0);
  });

  /** Opens connections that are idle or have half a request, until the end of the test. */
  async function holdConnections(server: Server): Promise<void> {
    const sockets = [
      { address: server.http, bytes: '' },
      { address: server.http, bytes: 'POST /v1/auth/login HTTP/1.1\r\nHost: x\r\n' },
      {
        address: server.http,
        bytes:
          'POST /v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"email"',
      },
      { address: server.grpc, bytes: '' },
      { address: server.grpc, bytes: 'PRI * HTTP/2.0\r\n\r\n' },
      { address: server.admin, bytes: 'GET /readyz HTTP/1.1\r\n' },
    ].map(({ address, bytes }) => {
      const [host, port] = address.split(':');
      const socket = connect(Number(port), host);
      socket.on('error', () => undefined);
      socket.write(bytes);
      return socket;
    });
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  }

  it('while it starts, it stops as well', async () => {
    const starting = stand.start(['serve'], env);
    await eventually('it listens', async () => starting.stdout().includes('Server listening'));
    expect((await starting.stop()).code).toBe(0);
  });
});

describe('grpc.listen: unix:/path', () => {
  it('decides with several workers on a socket that others cannot reach, also after a server that was killed left it behind; no worker outlives that server', async () => {
    const path = join(stand.folder, 'postern.sock');
    const first = await stand.serve({ ...env, POSTERN_WORKERS: '2', POSTERN_GRPC_LISTEN: `unix:${path}` });
    expect(first.grpc).toBe(`unix:${path}`);
    const { key } = await makeKey(first.http, await login(first.http));
    expect(await gateAt(first.grpc).decide(key)).toBe('allow');
    expect((await stat(path)).mode & 0o007).toBe(0);
    const workers = await eventually('both gates and the API run', async () => {
      const now = await childrenOf(first.pid);
      return now.length === 3 && now;
    });
    await first.stop('SIGKILL');
    for (const pid of workers) await eventually('the worker ends', async () => !(await isRunning(pid)));
    const second = await stand.serveGate({ ...env, POSTERN_WORKERS: '2', POSTERN_GRPC_LISTEN: first.grpc });
    expect(await gateAt(second.grpc).decide(key)).toBe('allow');
    expect((await second.stop()).code).toBe(0);
  });
});

describe('workers: 2', () => {
  it('both decide, and are counted together; a killed one is replaced; after SIGTERM all end', async () => {
    const running = await stand.serve({ ...env, POSTERN_WORKERS: '2' });
    await eventually('both run', async () => (await processesOf(running.pid, 'gate')).length === 2);
    const { key } = await makeKey(running.http, await login(running.http));
    // Connections are dealt in turn, and each worker keeps what it has looked up.
    await eventually('both have decided about the key', async () => {
      const client = decider(running.grpc);
      expect(await client.decide(key).finally(() => client.close())).toBe('allow');
      return (await metric(running.admin, 'postern_cache_entries{cache="keys",kind="present"}')) === 2;
    });
    const counted = await metric(running.admin, 'postern_checks_total{outcome="allow"');
    const gate = gateAt(running.grpc);
    for (let i = 0; i < 5; i++) expect(await gate.decide(key)).toBe('allow');
    expect(await metric(running.admin, 'postern_checks_total{outcome="allow"')).toBe(counted + 5);

    const [victim = 0, survivor = 0] = await processesOf(running.pid, 'gate');
    process.kill(victim, 'SIGKILL');
    const replaced = await eventually('another takes its place', async () => {
      const now = await processesOf(running.pid, 'gate');
      return now.length === 2 && !now.includes(victim) && now;
    });
    expect(replaced).toContain(survivor);
    // The metrics are answered while the other worker starts.
    expect(await metric(running.admin, 'postern_checks_total{outcome="allow"')).toBeGreaterThan(0);
    expect(await isReady(running.admin)).toBe(true);
    await eventually('both decide', async () => {
      const client = decider(running.grpc);
      expect(await client.decide(key).finally(() => client.close())).toBe('allow');
      return (await metric(running.admin, 'postern_cache_entries{cache="keys",kind="present"}')) === 2;
    });

    const { code, stderr } = await running.stop();
    expect([code, stderr]).toEqual([0, '']);
    for (const pid of replaced) expect(await isRunning(pid)).toBe(false);
  });

  describe('without notifications', () => {
    let running: Server;
    beforeAll(async () => {
      // A gate then reads a change when the API requests it, or within a second.
      running = await stand.serve({ ...env, POSTERN_WORKERS: '2', POSTERN_DATABASE_NOTIFICATIONS: 'false' });
    });

    it('a revocation is answered after every gate worker refuses the key', async () => {
      const admin = await login(running.http);
      const { id, key } = await makeKey(running.http, admin);
      const verdicts = async (): Promise<string> => {
        // A connection of its own each time: one after the other they reach every worker.
        const seen = new Set<string>();
        for (let i = 0; i < 4; i++) {
          const client = decider(running.grpc);
          seen.add(await client.decide(key).finally(() => client.close()));
        }
        return [...seen].join();
      };
      expect(await verdicts()).toBe('allow');
      expect((await call(running.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: admin })).status).toBe(204);
      expect(await verdicts()).toBe('invalid_credential');
    });

    it('after SIGINT to the whole process group, as from a terminal, all end in order', async () => {
      const workers = await childrenOf(running.pid);
      for (const pid of [...workers, running.pid]) process.kill(pid, 'SIGINT');
      const { code } = await running.finished;
      expect(code).toBe(0);
      for (const pid of workers) expect(await isRunning(pid)).toBe(false);
    });
  });
});
