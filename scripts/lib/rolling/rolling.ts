/** A rolling restart of two servers behind Envoy while clients send requests: what happened to each of them. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startUpstream } from '../../../src/demo/upstream.ts';
import { freeAddress } from '../../../test/support/ports.ts';
import { api, textOf } from './api.ts';
import { startProductionEdge, writeCertificates } from './envoy.ts';
import { type Failure, type LoadRequest, startLoad } from './load.ts';
import { metric, type Place, type ServerProcess, startServer } from './server.ts';

export interface Step {
  /** Which of the two servers is stopped. */
  readonly server: 0 | 1;
  /** The folder of the program that takes its place. */
  readonly root: string;
}

export interface RollingOptions {
  readonly envoy: string;
  readonly databaseUrl: string;
  /** The folder of the program that both servers run at first. */
  readonly root: string;
  readonly steps: readonly Step[];
  readonly drainNotice: string;
  /** Default: that of production.yaml. */
  readonly healthCheckInterval?: string;
  /** Default: that of production.yaml, within which a server on a busy machine may not answer its first check. */
  readonly checkTimeout?: string;
  /** Requests of each kind that must be answered before, between and after the steps. */
  readonly between: number;
  /** Between two requests of one client. Default: 40. */
  readonly pauseMs?: number;
}

export interface RollingOutcome {
  readonly answered: ReadonlyMap<string, number>;
  readonly failed: ReadonlyMap<string, number>;
  /** The first of the failed requests. */
  readonly failures: readonly Failure[];
  /** How each stopped server ended. */
  readonly exits: readonly (number | NodeJS.Signals)[];
  /** Checks that the two servers answered after each step, side by side. */
  readonly checksAfter: readonly (readonly number[])[];
  /** Of Envoy and the servers, to find a failure's cause. */
  readonly logs: string;
}

const PASSWORD = 'the administrator of a rolling restart';
const SECRET_KEY = 'a secret key for servers that are restarted one by one';
const CHECKS = 'postern_checks_total{';
const POLL_MS = 25;
const LIMIT_MS = 60_000;

export async function restartRolling(options: RollingOptions): Promise<RollingOutcome> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'postern-rolling-'));
  await chmod(folder, 0o711);
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  const certificates = await writeCertificates(folder);
  const upstream = await startUpstream('127.0.0.1', 0);
  cleanUp.defer(() => upstream.close());
  const places = [await place(), await place()] as const;
  const env = {
    POSTERN_DATABASE_URL: options.databaseUrl,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: PASSWORD,
    POSTERN_DRAIN_NOTICE: options.drainNotice,
    POSTERN_GRPC_TLS_CERT_FILE: certificates.server.cert,
    POSTERN_GRPC_TLS_KEY_FILE: certificates.server.key,
    POSTERN_GRPC_TLS_CLIENT_CA_FILE: certificates.server.clientCa,
    POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1/32"]',
  };
  const servers: ServerProcess[] = [];
  cleanUp.defer(() => {
    for (const server of servers) server.kill();
  });
  for (const at of places) servers.push(await startServer(options.root, folder, at, env));
  const edge = await startProductionEdge({
    binary: options.envoy,
    etc: certificates.etc,
    servers: places,
    upstream: `${upstream.host}:${upstream.port}`,
    ...(options.healthCheckInterval === undefined ? {} : { healthCheckInterval: options.healthCheckInterval }),
    ...(options.checkTimeout === undefined ? {} : { checkTimeout: options.checkTimeout }),
  });
  cleanUp.defer(() => edge.stop());
  await until('both servers are healthy for Envoy', async () => (await edge.healthy()) === 2);

  const at = { host: edge.host, port: edge.port, ca: certificates.ca };
  const load = startLoad(at, await requestsFor(places[0]), options.pauseMs);
  cleanUp.defer(() => load.stop());
  await load.more(options.between);
  const exits: (number | NodeJS.Signals)[] = [];
  const checksAfter: (readonly number[])[] = [];
  let logs = '';
  for (const { server, root } of options.steps) {
    const former = servers[server];
    if (former === undefined) throw new Error(`there is no server ${server}`);
    exits.push(await former.stop());
    logs += former.output();
    await load.more(options.between);
    servers[server] = await startServer(root, folder, places[server], env);
    await until('Envoy finds the new server healthy', async () => (await edge.healthy()) === 2);
    const before = await checksOf(places);
    await load.more(options.between);
    checksAfter.push((await checksOf(places)).map((count, i) => count - (before[i] ?? 0)));
  }
  await load.stop();
  for (const server of servers) exits.push(await server.stop());
  return {
    answered: load.answered,
    failed: load.failed,
    failures: load.failures,
    exits,
    checksAfter,
    logs: [logs, ...servers.map((server) => server.output()), edge.output()].join('\n'),
  };
}

function checksOf(places: readonly Place[]): Promise<number[]> {
  return Promise.all(places.map((at) => metric(at, CHECKS)));
}

async function place(): Promise<Place> {
  return { grpc: await freeAddress(), http: await freeAddress(), admin: await freeAddress() };
}

/** Decisions by path and by body, metered ones among them, and requests to Postern's own API. */
async function requestsFor({ http }: Place): Promise<readonly LoadRequest[]> {
  const login = { email: 'admin@localhost', password: PASSWORD };
  const token = textOf(await api(http, 'POST', '/v1/auth/login', { body: login }), 'access_token');
  const spec = {
    description: 'sends requests during a restart',
    scopes: ['models:read', 'chat:write'],
    expires_in_days: 1,
  };
  const made = await api(http, 'POST', '/v1/iam/api-keys', { token, body: spec });
  const key = { authorization: `Bearer ${textOf(made, 'key')}` };
  const changed = await api(http, 'POST', '/v1/iam/api-keys', { token, body: spec });
  const caller = { authorization: `Bearer ${token}` };
  const json = { 'content-type': 'application/json' };
  const chat = JSON.stringify({ model: 'llama-3', max_tokens: 16, messages: [{ role: 'user', content: 'hello' }] });
  return [
    { name: 'decided by the path', method: 'GET', path: '/v1/models', headers: key, clients: 4 },
    {
      name: 'decided by the body',
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { ...key, ...json },
      body: chat,
      clients: 4,
    },
    { name: 'decided by a token', method: 'GET', path: '/v1/models', headers: caller, clients: 2 },
    { name: 'API, read', method: 'GET', path: '/v1/auth/me', headers: caller, clients: 2 },
    {
      name: 'API, write',
      method: 'PUT',
      path: `/v1/iam/api-keys/${textOf(changed, 'id')}`,
      headers: { ...caller, ...json },
      body: JSON.stringify({ description: 'changed during a restart' }),
      clients: 1,
    },
  ];
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + LIMIT_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    if (await holds().catch(() => false)) return;
  }
  throw new Error(`not within ${LIMIT_MS} ms: ${what}`);
}
