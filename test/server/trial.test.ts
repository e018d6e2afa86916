/**
 * A trial beside another gate: the whole server as a process, a real Envoy with the configuration that
 * `postern envoy config --shadow` prints, and behind its check the filter of another gate, which denies by a rule of its
 * own. TEST_TRIAL_REQUESTS is the number of random requests of the decision cases.
 */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { Mapping } from '../../src/cli/envoy-config.ts';
import { itemNamed, listAt, mapping } from '../../src/cli/envoy-config.ts';
import { type CheckServer, type SeenCheck, startCheckServer } from '../support/check-server.ts';
import { runCommand } from '../support/command.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startConfig, statOf } from '../support/envoy.ts';
import { type Answer, type NamedServer, send, startNamedServer } from '../support/http.ts';
import { storeWorld } from '../support/stored-world.ts';
import { bodyOf, codeOf, compileWorld, type DecisionCase, decideCase, loadCases } from '../support/world.ts';
import { ADMIN, done, login, SECRET_KEY, tryLogin } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { metric, openStand, type Server, type Stand } from './support/postern.ts';
import { processesOf } from './support/processes.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 120_000 });

const REQUESTS = Number(process.env['TEST_TRIAL_REQUESTS'] ?? 300);
const CONCURRENT = 8;
const { defaults, world, cases } = loadCases();
const compiled = compileWorld(world);

let stand: Stand;
let database: FreshDatabase;
let server: Server;
let upstream: NamedServer;
let other: CheckServer;
/** With the check in shadow mode, and without it. */
let edge: Edge;
let plain: Edge;
let admin: string;
/** The value of `Authorization` for the `as` of a case. */
const authorization = new Map<string | null, string | undefined>([[null, undefined]]);

/** The other gate's rule. It has nothing to do with Postern's. */
const isDeniedThere = (number: string): boolean => Number(number) % 3 === 0;

beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
  [upstream, other] = await Promise.all([
    startNamedServer('upstream'),
    startCheckServer((check) => {
      const denies = isDeniedThere(headerOf(check, 'x-case'));
      return denies
        ? { kind: 'deny', status: 403, body: '{"denied":"there"}' }
        : { kind: 'allow', set: { 'x-other': 'yes' } };
    }),
  ]);
  server = await stand.serve({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_CLIENT_IP_TRUSTED_HOPS: '1',
  });
  admin = await login(server.http);
  const { keys } = await storeWorld(database.db.knex, world, new Date(Date.now() + 86_400_000));
  for (const [label, text] of keys) authorization.set(label, `Bearer ${text}`);
  await signIn();
  const args = ['--profile', 'demo', '--shadow', '--listen', '127.0.0.1:0', '--grpc', server.grpc];
  const printed = await runCommand(['envoy', 'config', ...args, '--upstream', upstream.address], {});
  expect([printed.code, printed.stderr]).toEqual([0, '']);
  edge = await startConfig(beside(parse(printed.stdout)));
  plain = await startConfig(withoutCheck(beside(parse(printed.stdout))));
  await eventually(
    'Envoy finds Postern healthy',
    async () => (await statOf(edge, 'cluster.postern-grpc.membership_healthy')) > 0,
  );
});

afterAll(async () => {
  await Promise.all([edge?.stop(), plain?.stop()]);
  other?.close();
  upstream?.close();
  await stand?.close();
  await database?.close();
});

/** Gives the users of the cases the administrator's password, and takes a token of each that can log in. */
async function signIn(): Promise<void> {
  const text =
    'update users set password_hash = (select password_hash from users where email = $1) where password_hash is null';
  await database.db.query({ text, values: [ADMIN.email] });
  for (const { id } of world.users) {
    const { status, body } = await tryLogin(server.http, { email: `${id}@example.com`, password: ADMIN.password });
    if (status === 200) authorization.set(id, `Bearer ${String(body['access_token'])}`);
  }
}

/** Puts the filter of the other gate after Postern's. */
function beside(config: Mapping): Mapping {
  const manager = managerOf(config);
  const cluster = itemNamed(config, 'postern-grpc', 'static_resources', 'clusters');
  const [host, port] = other.address.split(':');
  const address = { socket_address: { address: host, port_value: Number(port) } };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address } }] }];
  mapping(config['static_resources'])['clusters'] = [
    ...listAt(config, 'static_resources', 'clusters'),
    { ...cluster, name: 'other', load_assignment: { cluster_name: 'other', endpoints } },
  ];
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: 'other' }, timeout: '30s' },
  };
  const [check, router] = listAt(manager, 'http_filters');
  manager['http_filters'] = [check, { name: 'other', typed_config }, router];
  config['admin'] = { address: { socket_address: { address: '127.0.0.1', port_value: 0 } } };
  return config;
}

function withoutCheck(config: Mapping): Mapping {
  const manager = managerOf(config);
  manager['http_filters'] = listAt(manager, 'http_filters').slice(1);
  manager['access_log'] = [];
  return config;
}

function managerOf(config: Mapping): Mapping {
  const listener = itemNamed(config, 'edge', 'static_resources', 'listeners');
  return mapping(listAt(listener, 'filter_chains', 0, 'filters')[0]?.['typed_config']);
}

function headerOf({ headers }: SeenCheck, name: string): string {
  return headers.find(([key]) => key === name)?.[1] ?? '';
}

/** The cases that a client of this test can send. */
const sendable = () => cases.filter(({ only, as }) => only !== 'direct' && authorizationOf(as) !== null);

/** Null: this test has no such credential. */
function authorizationOf(as: string | null): string | undefined | null {
  if (as?.startsWith('header:') === true) return as.slice(7);
  if (as?.startsWith('raw:') === true) return `Bearer ${as.slice(4)}`;
  return authorization.has(as) ? authorization.get(as) : null;
}

function ask(url: string, one: DecisionCase, number: number): Promise<Answer> {
  const body = bodyOf(one);
  const credential = authorizationOf(one.as);
  const headers = {
    ...(typeof credential === 'string' ? { authorization: credential } : {}),
    ...(one.tenant === undefined ? {} : { 'x-tenant-id': one.tenant }),
    ...(body === undefined ? {} : { 'content-type': one.content_type ?? 'application/json' }),
    'x-forwarded-for': one.ip ?? defaults.ip,
    ...one.headers,
    'x-case': String(number),
  };
  return send(url, { method: one.method, path: one.path, headers, ...(body === undefined ? {} : { body }) });
}

/** Everything that checks count, reserve or book. */
const COUNTED = [
  ...['rate_windows', 'token_budgets', 'settlements', 'usage_daily', 'open_requests', 'collection_reservations'],
  ...['reservation_renewals', 'key_permissions_used', 'decision_counts', 'budget_alerts', 'user_identities'],
];

async function counted(): Promise<unknown> {
  const [row] = await database.db.query({
    text: `select ${COUNTED.map((table) => `(select count(*)::int from ${table}) as ${table}`).join(', ')},
      (select count(*)::int from api_keys where last_used_at is not null) as used_keys,
      (select count(*)::int from recent_decisions where not shadow) as enforced`,
  });
  return row;
}

const api = async (path: string) => (await done(server.http, 'GET', `/v1/iam/decisions${path}`, { token: admin })).body;

async function listed(query: string): Promise<ReadonlyMap<string, Mapping>> {
  const rows = new Map<string, Mapping>();
  for (let cursor = ''; ; ) {
    const body = await api(`/recent?tenant_id=*&shadow=true&limit=200&${query}${cursor}`);
    for (const row of listAt(body, 'data')) rows.set(String(row['client_request_id']), row);
    if (body['has_more'] !== true) return rows;
    cursor = `&cursor=${String(body['next_cursor'])}`;
  }
}

it(`a trial of ${REQUESTS} random requests changes no answer and no counter, and lists every difference`, async () => {
  const before = await counted();
  const choices = sendable();
  expect(choices.length).toBeGreaterThan(80);
  const sent = Array.from({ length: REQUESTS }, () => choices[Math.floor(Math.random() * choices.length)] ?? never());
  const answers = new Map<number, Answer>();
  const numbers = sent.keys();
  const worker = async (): Promise<void> => {
    for (const number of numbers) answers.set(number, await ask(edge.url, sent[number] ?? never(), number));
  };
  await Promise.all(Array.from({ length: CONCURRENT }, worker));

  // The other gate is asked after Postern, about every request that Envoy itself accepts.
  const expected = new Map<string, { readonly code: string; readonly here: string; readonly there: string }>();
  for (const check of other.seen) {
    const number = headerOf(check, 'x-case');
    const one = { ...(sent[Number(number)] ?? never()), time: new Date().toISOString() };
    const code = codeOf(decideCase(compiled, one, defaults));
    const there = isDeniedThere(number) ? 'deny' : 'allow';
    expected.set(headerOf(check, 'x-request-id'), { code, here: code === 'allow' ? 'allow' : 'deny', there });
    expect(answers.get(Number(number))?.status, number).toBe(there === 'deny' ? 403 : 200);
  }
  expect(expected.size).toBeGreaterThan(REQUESTS / 2);

  await eventually('all decisions and reports are written', async () => {
    const { recorded, not_recorded, total } = await api('/trial?tenant_id=*');
    const { allow, deny } = mapping(recorded);
    const both = Number(allow) + Number(deny);
    const denials = (await listed('other=deny')).size;
    const deniedThere = [...expected.values()].filter(({ there }) => there === 'deny').length;
    return both === expected.size && denials === deniedThere && not_recorded === 0 && mapping(total)['fault'] === 0;
  });

  const rows = await listed('');
  const codes = new Map([...expected].map(([id, { code }]) => [id, code]));
  expect(new Map([...rows].map(([id, row]) => [id, row['code'] === 'public' ? 'allow' : row['code']]))).toEqual(codes);
  for (const [id, row] of rows) expect([row['other'], row['shadow']]).toEqual([expected.get(id)?.there, true]);
  const differing = [...expected].filter(([, { here, there }]) => here !== there);
  expect(new Set((await listed('differs=true')).keys())).toEqual(new Set(differing.map(([id]) => id)));
  expect(differing.length).toBeGreaterThan(0);

  const trial = await api('/trial?tenant_id=*');
  const only = (outcome: string) => differing.filter(([, { here }]) => here === outcome).length;
  expect(trial).toMatchObject({
    differences: { denied_here: only('deny'), denied_there: only('allow') },
    other_gate_reported_at: expect.any(String),
  });
  expect(await counted()).toEqual(before);
  expect(await metric(server.admin, 'postern_checks_total')).toBe(0);
  expect(await metric(server.admin, 'postern_shadow_checks_total')).toBe(expected.size);
  for (const name of ['postern_shadow_decisions_dropped_total', 'postern_other_gate_denials_dropped_total'])
    expect(await metric(server.admin, name)).toBe(0);
});

it('a request and its answer are those of an Envoy without the check', async () => {
  const own = new Set(['x-request-id', 'date', 'x-envoy-upstream-service-time']);
  const seen = ({ status, headers, body }: Answer) => {
    const { headers: sent = {}, ...rest } = status === 200 ? JSON.parse(body) : { body };
    const strip = (all: object) => Object.entries(all).filter(([name]) => !own.has(name));
    return { status, headers: strip(headers), sent: strip(sent), ...rest };
  };
  const choices = sendable();
  for (let number = 0; number < 60; number++) {
    const one = choices[Math.floor((number * choices.length) / 60)] ?? never();
    const [with_, without] = await Promise.all([ask(edge.url, one, number), ask(plain.url, one, number)]);
    expect(seen(with_), one.name).toEqual(seen(without));
  }
});

it('no answer changes while the API process is stopped and the database hangs, and the trial then misses nothing', async () => {
  const [stopped] = await processesOf(server.pid, 'api');
  if (stopped === undefined) throw new Error('the server has no API process');
  process.kill(stopped, 'SIGSTOP');
  try {
    await database.db.knex.transaction(async (trx) => {
      await trx.raw('lock table recent_decisions, other_gate_denials, shadow_decision_counts in access exclusive mode');
      await answersOfTheOtherGate(40);
      const waits = async (): Promise<readonly string[]> => {
        const { rows } = await trx.raw<{ rows: { wait: string }[] }>(
          `select concat(l.pid, ' since ', l.waitstart) as wait from pg_locks l join pg_database d on d.oid = l.database
           where d.datname = current_database() and not granted and l.waitstart is not null`,
        );
        return rows.map(({ wait }) => wait);
      };
      const first = await eventually('a statement waits for its table', async () => (await waits()).at(0) ?? false);
      // Other statements may wait by then.
      await eventually('it has given up', async () => !(await waits()).includes(first));
    });
  } finally {
    process.kill(stopped, 'SIGCONT');
  }
  await eventually('every decision is recorded', async () => {
    const { recorded, not_recorded } = await api('/trial?tenant_id=*');
    const { allow, deny } = mapping(recorded);
    const checks = await metric(server.admin, 'postern_shadow_checks_total');
    return Number(allow) + Number(deny) === checks && not_recorded === 0;
  });
  for (const name of ['postern_shadow_decisions_dropped_total', 'postern_other_gate_denials_dropped_total'])
    expect(await metric(server.admin, name)).toBe(0);
});

/** Sends requests, and expects the answers that the other gate gives. */
async function answersOfTheOtherGate(requests: number): Promise<void> {
  const choices = sendable();
  other.seen.length = 0;
  for (let number = 0; number < requests; number++) {
    const { status } = await ask(edge.url, choices[number] ?? never(), number);
    const reached = other.seen.some((check) => headerOf(check, 'x-case') === String(number));
    if (reached) expect(status).toBe(isDeniedThere(String(number)) ? 403 : 200);
  }
  expect(other.seen.length).toBeGreaterThan(requests / 2);
}

it('no answer changes while the server is down', async () => {
  await server.stop();
  await answersOfTheOtherGate(30);
});

function never(): never {
  throw new Error('a number without a case');
}
