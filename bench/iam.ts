/**
 * Identity and access management at a million users: reads, writes with their audit rows, and every list and filter,
 * lucky and unlucky. The server has one core, the load the other; PostgreSQL runs wherever the two leave room. What is
 * measured while a hypervisor gives much of the processors to others is measured again.
 *
 * BENCH_IAM_USERS and BENCH_IAM_KEYS make the population smaller; BENCH_IAM_DATA keeps it in a folder for the next run.
 */

import { readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { runHttpLoad } from './http-load.ts';
import { LISTS, type ListCase } from './iam-lists.ts';
import type { HttpLoadResult, LoadRequest } from './iam-load.ts';
import { explainLists } from './iam-plans.ts';
import { addCallers, BIG, populateIam, removeWritten } from './iam-population.ts';
import { userOf } from './population.ts';
import { openWorld, type ServerUnderTest } from './server-under-test.ts';
import {
  median,
  memory,
  ownProcessorMs,
  printTable,
  processorMs,
  quantile,
  quietRounds,
  type Row,
  scratch,
  writeResult,
} from './stack.ts';

const USERS = Number(process.env['BENCH_IAM_USERS'] ?? 1_000_000);
const KEYS = Number(process.env['BENCH_IAM_KEYS'] ?? 250_000);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 10_000);
const LIST_CALLS = Number(process.env['BENCH_LIST_CALLS'] ?? 200);
const CALLERS = 40;
const CONNECTIONS = 16;
const WARM = 200;
const LIST_WARM = 20;

export async function iam(): Promise<void> {
  const directory = process.env['BENCH_IAM_DATA'] ?? scratch();
  await using world = await openWorld(directory, async (client) => {
    const { rows } = await client.query('select from users limit 1');
    if (rows.length > 0) {
      await removeWritten(client);
      return;
    }
    const started = performance.now();
    await populateIam(client, { users: USERS, keys: KEYS });
    await addCallers(client, CALLERS);
    console.log(`${USERS} users and ${KEYS} keys made in ${Math.round((performance.now() - started) / 1000)} s`);
  });
  const tokens = await world.tokens(CALLERS);
  const [root = ''] = tokens;
  // Every tenth user is of a small tenant.
  const administrators = tokens.filter((_, i) => i > 0 && i % 10 !== 9);
  await using stack = new AsyncDisposableStack();
  const server = await world.start();
  stack.defer(() => server.stop());

  const kinds = throughputKinds(root, administrators);
  // So that a number is never used again, not even by the next run on the same data.
  let from = (Date.now() % 1e9) * 1000;
  const load = (requests: readonly LoadRequest[], calls: number, connections: number, warm: number): HttpLoadResult => {
    from += calls + warm;
    return runHttpLoad({ address: server.http, connections, warm, calls, requests, from });
  };

  const meter = meterOf(server, directory);
  // Until what they run is compiled.
  for (const { requests } of kinds) load(requests, 2000, CONNECTIONS, 0);
  const rows: Row[] = [];
  for (const kind of kinds) rows.push(await measureKind(kind, load, meter));
  printTable(
    `IAM with ${USERS} users: ${CONNECTIONS} connections, medians of the quietest ${ROUNDS} rounds; us of processor time`,
    rows,
  );

  const lists: Row[] = [];
  for (const list of LISTS)
    lists.push(await measureList(list, list.everywhere ? root : (administrators[0] ?? ''), load, meter));
  printTable(
    `Lists with ${USERS} users and ${KEYS} keys, one request at a time, all calls of the quietest ${ROUNDS} rounds`,
    lists,
  );
  const plans = await explainLists(world.url, join(import.meta.dirname, 'results/iam-plans.txt'));
  console.log(
    `\n${plans} plans written to bench/results/iam-plans.txt. Resident memory: ${memory(server.pid).now} MB.`,
  );
  writeResult('iam', { users: USERS, keys: KEYS, rounds: ROUNDS, rows, lists, memoryMb: memory(server.pid) });
  await check(server, root);
}

interface Kind {
  readonly name: string;
  readonly write: boolean;
  /** Per second. */
  readonly goal: number | '';
  readonly requests: readonly LoadRequest[];
}

function throughputKinds(root: string, tokens: readonly string[]): readonly Kind[] {
  const token = (i: number): string => tokens[i % tokens.length] ?? '';
  /** Scattered over all users of the big tenant that are no callers. */
  const user = (i: number): string => userOf(CALLERS + ((((i * 611_953) % (USERS - 2 * CALLERS)) / 10) | 0) * 10);
  /** Of the younger half: the server removes keys some time after they expired. */
  const key = (i: number): string =>
    `key_${((((KEYS + ((i * 104_729) % KEYS)) / 20) | 0) * 10).toString(16).padStart(26, '0')}`;
  const many = (make: (i: number) => LoadRequest): readonly LoadRequest[] =>
    Array.from({ length: 997 }, (_, i) => make(i));
  return [
    {
      // What HTTP alone costs.
      name: 'GET /.well-known/jwks.json',
      write: false,
      goal: '',
      requests: [{ method: 'GET', path: '/.well-known/jwks.json', token: root }],
    },
    {
      name: 'GET a user',
      write: false,
      goal: 1500,
      requests: many((i) => ({ method: 'GET', path: `/v1/iam/users/${user(i)}`, token: token(i) })),
    },
    {
      name: 'GET oneself',
      write: false,
      goal: 1500,
      requests: many((i) => ({ method: 'GET', path: '/v1/auth/me', token: token(i) })),
    },
    {
      name: 'GET a key',
      write: false,
      goal: 1500,
      requests: many((i) => ({ method: 'GET', path: `/v1/iam/api-keys/${key(i)}`, token: token(i) })),
    },
    {
      name: 'POST a role',
      write: true,
      goal: 200,
      requests: many((i) => ({
        method: 'POST',
        path: '/v1/iam/roles',
        // In turn in all tenants: every change of a tenant's roles makes the server read that tenant anew.
        token: root,
        tenant: `tenant-${i}`,
        body: '{"name":"bench-{n}","permissions":["chat:read"]}',
      })),
    },
    {
      name: 'PUT a user',
      write: true,
      goal: 200,
      requests: many((i) => ({
        method: 'PUT',
        path: `/v1/iam/users/${user(i)}`,
        token: token(i),
        body: '{"name":"Renamed Nr {n}"}',
      })),
    },
    {
      name: 'POST a user',
      write: true,
      goal: 200,
      requests: many((i) => ({
        method: 'POST',
        path: '/v1/iam/users',
        token: token(i),
        body: '{"email":"bench{n}@example.org","name":"Made Nr {n}","department":"Research","roles":["developer"]}',
      })),
    },
    {
      name: 'POST a key',
      write: true,
      goal: 200,
      requests: many((i) => ({
        method: 'POST',
        path: '/v1/iam/api-keys',
        token: token(i),
        // Every other one is the tenant's own, which gets at most 10,000 in an hour, and has most keys already.
        body: `{"description":"Nr {n}","scopes":["chat:read"],"expires_in_days":30${i % 2 === 0 ? '' : `,"user_id":"${user(i)}"`}}`,
      })),
    },
  ];
}

interface Processors {
  readonly serverUs: number;
  readonly postgresUs: number;
}

/**
 * Processor time of each of so many calls, which the machine's other work changes less than it changes how long they
 * take.
 */
type Meter = (calls: number) => () => Processors;

function meterOf(server: ServerUnderTest, directory: string): Meter {
  const postgres = () => new Map(postgresOf(directory));
  return (calls) => {
    const before = { server: processorMs(server.pid), postgres: postgres() };
    return () => {
      // What ended meanwhile, such as a worker that vacuums, is not counted.
      const postgresMs = [...postgres()].reduce((sum, [pid, ms]) => sum + ms - (before.postgres.get(pid) ?? 0), 0);
      return {
        serverUs: ((processorMs(server.pid) - before.server) * 1000) / calls,
        postgresUs: (postgresMs * 1000) / calls,
      };
    };
  };
}

/**
 * The processes of the PostgreSQL server whose data are in a folder, where they work, and what processor time each has
 * used.
 */
function postgresOf(directory: string): readonly (readonly [pid: number, ms: number])[] {
  const home = realpathSync(directory);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`).startsWith(`${home}/`)
          ? [[Number(pid), ownProcessorMs(Number(pid))] as const]
          : [];
      } catch {
        // It has ended.
        return [];
      }
    });
}

async function measureKind({ name, write, goal, requests }: Kind, load: Loader, meter: Meter): Promise<Row> {
  const calls = write ? CALLS / 4 : CALLS;
  const rounds = await quietRounds(ROUNDS, () => {
    const used = meter(calls + WARM);
    return { load: load(requests, calls, CONNECTIONS, WARM), used: used() };
  });
  const loads = rounds.map(({ result }) => result.load);
  const used = rounds.map(({ result }) => result.used);
  return {
    request: name,
    'per second': Math.round(median(loads.map(({ perSecond }) => perSecond))),
    goal,
    'server us each': Math.round(median(used.map(({ serverUs }) => serverUs))),
    'PostgreSQL us each': Math.round(median(used.map(({ postgresUs }) => postgresUs))),
    'p50 ms': median(loads.map(({ p50Ms }) => p50Ms)).toFixed(1),
    'p99 ms': median(loads.map(({ p99Ms }) => p99Ms)).toFixed(1),
    'stolen %': percent(Math.max(...rounds.map(({ stolen }) => stolen))),
    answers: answers(loads),
  };
}

function percent(share: number): string {
  return (share * 100).toFixed(1);
}

type Loader = (requests: readonly LoadRequest[], calls: number, connections: number, warm: number) => HttpLoadResult;

async function measureList(list: ListCase, token: string, load: Loader, meter: Meter): Promise<Row> {
  const tenant = list.everywhere ? {} : { tenant: BIG };
  const rounds = await quietRounds(ROUNDS, () => {
    const used = meter(LIST_CALLS + LIST_WARM);
    return {
      load: load([{ method: 'GET', path: list.path, token, ...tenant }], LIST_CALLS, 1, LIST_WARM),
      used: used(),
    };
  });
  const loads = rounds.map(({ result }) => result.load);
  const latenciesMs = loads.flatMap((each) => each.latenciesMs);
  const used = rounds.map(({ result }) => result.used);
  return {
    list: list.name,
    'p50 ms': median(latenciesMs).toFixed(1),
    'p99 ms': quantile(latenciesMs, 0.99).toFixed(1),
    // Of one round.
    'worst p99 ms': Math.max(...loads.map(({ p99Ms }) => p99Ms)).toFixed(1),
    // Of the server and PostgreSQL together.
    'processor ms each': (median(used.map(({ serverUs, postgresUs }) => serverUs + postgresUs)) / 1000).toFixed(1),
    'stolen %': percent(Math.max(...rounds.map(({ stolen }) => stolen))),
    answers: answers(loads),
  };
}

function answers(results: readonly HttpLoadResult[]): string {
  const statuses = new Set(results.flatMap((result) => Object.keys(result.statuses)));
  return [...statuses].toSorted((left, right) => Number(left) - Number(right)).join(' ');
}

/** The figures of a server that answers wrongly are worth nothing. */
async function check(server: ServerUnderTest, root: string): Promise<void> {
  const response = await fetch(`http://${server.http}/v1/iam/users?tenant_id=*&q=zbigniew+quux`, {
    headers: { authorization: `Bearer ${root}` },
  });
  const { data } = (await response.json()) as { data: { name: string }[] };
  if (data.length === 0 || data.some(({ name }) => !name.startsWith('Zbigniew')))
    throw new Error('the search is wrong');
}
