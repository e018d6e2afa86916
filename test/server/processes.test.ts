/**
 * The gate and the API as processes of their own: what happens to the API does not reach a check, and a write reaches
 * every gate.
 */

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { send } from '../support/http.ts';
import { freeAddress } from '../support/ports.ts';
import { ADMIN, call, type Decider, decider, done, login, makeKey, type Reply, SECRET_KEY } from './support/client.ts';
import { becomes, eventually } from './support/eventually.ts';
import {
  type ApiServer,
  isReady,
  logLines,
  metric,
  openStand,
  type Running,
  type Server,
  type Stand,
} from './support/postern.ts';
import { processesOf } from './support/processes.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const execute = promisify(execFile);

let stand: Stand;
let database: FreshDatabase;
let env: NodeJS.ProcessEnv;
const stopped: number[] = [];

beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  env = {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
  };
});
afterEach(() => {
  for (const pid of stopped.splice(0)) resume(pid);
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

function stop(pid: number): void {
  stopped.push(pid);
  process.kill(pid, 'SIGSTOP');
}

function resume(pid: number): void {
  try {
    process.kill(pid, 'SIGCONT');
  } catch {
    // It has been killed during the wait.
  }
}

function gateAt(grpc: string): Decider {
  const gate = decider(grpc);
  onTestFinished(() => gate.close());
  return gate;
}

async function apiOf(server: Running): Promise<number> {
  return eventually('the API process runs', async () => (await processesOf(server.pid, 'api'))[0]);
}

/** With an address for HTTP that stays when the API is replaced. */
async function startServer(more: NodeJS.ProcessEnv = {}): Promise<Server> {
  return stand.serve({ ...env, POSTERN_HTTP_LISTEN: await freeAddress(), ...more });
}

async function warningsOf(admin: string): Promise<readonly string[]> {
  const { warnings = [] }: { warnings?: string[] } = JSON.parse(
    (await send(`http://${admin}`, { path: '/readyz' })).body,
  );
  return warnings;
}

describe('a server with one gate', () => {
  let server: Server;
  let key: string;
  beforeAll(async () => {
    // Each process but the first would find the pipe empty.
    const pipe = join(stand.folder, 'pipe');
    await execute('mkfifo', [pipe]);
    const written = writeFile(pipe, 'routes: [{method: GET, path: /v1/reports, permission: "chat:read"}]\n');
    server = await startServer({ POSTERN_GRPC_LISTEN: await freeAddress(), POSTERN_CONFIG: pipe });
    await written;
    ({ key } = await makeKey(server.http, await login(server.http)));
  });
  afterAll(() => server?.stop('SIGKILL'));

  it('decides while the API process is killed and replaced, and stays ready with a warning', async () => {
    const gate = gateAt(server.grpc);
    const api = await apiOf(server);
    process.kill(api, 'SIGKILL');
    await becomes('readiness warns of the missing API', true, async () => {
      expect(await gate.decide(key)).toBe('allow');
      return (await warningsOf(server.admin)).some((warning) => warning.startsWith('api: '));
    });
    expect(await isReady(server.admin)).toBe(true);
    await eventually('the API answers again', async () => {
      expect(await gate.decide(key)).toBe('allow');
      return (await call(server.http, 'GET', '/v1/auth/me')).status === 401;
    });
    expect(await apiOf(server)).not.toBe(api);
    await becomes('the warning is gone', 0, async () => (await warningsOf(server.admin)).length);
    expect(await metric(server.admin, 'postern_process_restarts_total{process="api"}')).toBe(1);
  });

  it('decides while the API process is stuck, metrics are answered, and the stuck process is replaced', async () => {
    const gate = gateAt(server.grpc);
    const api = await apiOf(server);
    const counted = await metric(server.admin, 'postern_logins_total');
    stop(api);
    expect(await gate.decide(key)).toBe('allow');
    // Numbers of a process that does not answer are those of its last answer.
    expect(await metric(server.admin, 'postern_logins_total')).toBe(counted);
    await eventually('another API process answers', async () => {
      expect(await gate.decide(key)).toBe('allow');
      return (
        (await processesOf(server.pid, 'api')).every((pid) => pid !== api) &&
        (await call(server.http, 'GET', '/v1/auth/me')).status === 401
      );
    });
    expect(killedIn(server)).toEqual(['api']);
  });

  it('gives a gate that replaces a killed one the configuration with which the server started', async () => {
    const decideAnew = () => gateAt(server.grpc).decide(key, { path: '/v1/reports' });
    expect(await decideAnew()).toBe('allow');
    const [killed = 0] = await processesOf(server.pid, 'gate');
    process.kill(killed, 'SIGKILL');
    await eventually('another gate runs', async () =>
      (await processesOf(server.pid, 'gate')).some((pid) => pid !== killed),
    );
    await eventually('it decides', async () => (await decideAnew()) === 'allow');
  });

  it('accepts new connections at its gate while the supervisor is stopped', async () => {
    stop(server.pid);
    expect(await gateAt(server.grpc).decide(key)).toBe('allow');
  });

  it('kills a gate that hangs before an API process that hung earlier, and another gate decides', async () => {
    const before = killedIn(server).length;
    const [worker] = await processesOf(server.pid, 'gate');
    const api = await apiOf(server);
    stop(api);
    // Each scrape waits for the stopped process, so the API is silent for longer than the worker.
    for (let scrapes = 0; scrapes < 2; scrapes++) await metric(server.admin, 'postern_logins_total');
    stop(Number(worker));
    await becomes('the server is not ready without a gate', false, () => isReady(server.admin));
    expect(killedIn(server).slice(before)).toEqual(['gate']);
    await eventually('another gate decides', async () => (await gateAt(server.grpc).decide(key)) === 'allow');
    await eventually('the API is killed as well', async () => killedIn(server).length === before + 2);
  });
});

/** The kinds of the processes that the server has killed because they stopped reporting. */
function killedIn(server: Server): readonly unknown[] {
  return logLines(server.stdout()).flatMap(({ msg, process: kind }) =>
    msg === 'a process stopped reporting; killing it' ? [kind] : [],
  );
}

describe('a write to a server with two gates', () => {
  let server: Server;
  let token: string;
  beforeAll(async () => {
    server = await startServer({ POSTERN_WORKERS: '2' });
    token = await login(server.http);
  });
  afterAll(() => server?.stop('SIGKILL'));

  it('is answered within its bound while the supervisor is stopped, and a metric counts it', async () => {
    stop(server.pid);
    await makeKey(server.http, token);
    resume(server.pid);
    await eventually('a metric counts it', async () => {
      return (await metric(server.admin, 'postern_local_apply_timeouts_total')) >= 1;
    });
  });

  it('is answered while a gate hangs', async () => {
    const gates = await eventually('both gates run', async () => {
      const pids = await processesOf(server.pid, 'gate');
      return pids.length === 2 && pids;
    });
    stop(gates[0] ?? 0);
    await makeKey(server.http, token);
  });
});

describe('postern serve --only', () => {
  it('gate and api serve their own listener each, and what one creates the other decides by', async () => {
    const [http, grpc, apiAdmin, gateAdmin] = [
      await freeAddress(),
      await freeAddress(),
      await freeAddress(),
      await freeAddress(),
    ];
    const unused = await freeAddress();
    const api = stand.start(['serve', '--only', 'api'], {
      ...env,
      POSTERN_HTTP_LISTEN: http,
      POSTERN_GRPC_LISTEN: unused,
      POSTERN_ADMIN_LISTEN: apiAdmin,
    });
    const gate = stand.start(['serve', '--only', 'gate'], {
      ...env,
      POSTERN_HTTP_LISTEN: unused,
      POSTERN_GRPC_LISTEN: grpc,
      POSTERN_ADMIN_LISTEN: gateAdmin,
    });
    await eventually('both are ready', async () => (await isReady(apiAdmin)) && (await isReady(gateAdmin)));
    for (const [admin, kind] of [
      [apiAdmin, 'api'],
      [gateAdmin, 'gate'],
    ]) {
      const { body } = await send(`http://${admin}`, { path: '/metrics' });
      expect(body).toContain(`\npostern_processes_ready{process="${kind}"} 1\n`);
    }
    const token = await login(http);
    const { id, key } = await makeKey(http, token);
    await becomes('the gate allows the key', 'allow', () => gateAt(grpc).decide(key));
    await done(http, 'DELETE', `/v1/iam/api-keys/${id}`, { token });
    await becomes('the gate refuses the key', 'invalid_credential', () => gateAt(grpc).decide(key));
    await expect(send(`http://${unused}`, { path: '/v1/auth/me' })).rejects.toThrow(/ECONNREFUSED/);
    expect((await gate.stop()).code).toBe(0);
    expect((await api.stop()).code).toBe(0);
  });

  it('refuses any other kind with the kinds that there are', async () => {
    const { code, stderr } = await runCommand(['serve', '--only', 'console'], env);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^--only must be gate or api, not console\.$/m);
  });
});

describe('Prefer: wait=applied', () => {
  async function revoke(server: ApiServer, token: string, id: string): Promise<Reply> {
    const answer = await send(`http://${server.http}`, {
      method: 'DELETE',
      path: `/v1/iam/api-keys/${id}`,
      headers: { authorization: `Bearer ${token}`, prefer: 'wait=applied' },
    });
    return { status: answer.status, headers: answer.headers, body: {} };
  }

  it.each(['true', 'false'])(
    'answers after every replica refuses a revoked key, and says how many have not applied the change if one does not answer, with notifications: %s',
    async (notifications) => {
      const fresh = await freshDatabase();
      onTestFinished(() => fresh.close());
      const more = { POSTERN_DATABASE_URL: fresh.url, POSTERN_DATABASE_NOTIFICATIONS: notifications };
      const [here, whole, gateOnly] = await Promise.all([
        stand.serveApi({ ...env, ...more }),
        startServer(more),
        stand.serveGate({ ...env, ...more }),
      ]);
      const gates = [whole, gateOnly].map(({ grpc }) => gateAt(grpc));
      const token = await login(here.http);
      for (let trial = 0; trial < 5; trial++) {
        const { id, key } = await makeKey(here.http, token);
        for (const gate of gates) await becomes('a replica allows the key', 'allow', () => gate.decide(key));
        const { status, headers } = await revoke(here, token, id);
        expect([status, headers['preference-applied']]).toEqual([204, 'wait=applied']);
        expect(await Promise.all(gates.map((gate) => gate.decide(key)))).toEqual([
          'invalid_credential',
          'invalid_credential',
        ]);
      }

      const { id } = await makeKey(here.http, token);
      for (const kind of ['gate', 'api'] as const) for (const pid of await processesOf(whole.pid, kind)) stop(pid);
      const { status, headers } = await revoke(here, token, id);
      expect([status, headers['preference-applied'], headers['x-postern-pending-replicas']]).toEqual([
        204,
        'wait=partial',
        '1',
      ]);
      await here.stop();
    },
  );
});
