/**
 * The cost of 16 budgets and 8 limits by model on each key: warm chat checks beside those of keys without, on one server,
 * and on two servers that share the budgets.
 */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { keyText, populate } from './population.ts';
import { openWorld, type ServerUnderTest } from './server-under-test.ts';
import { buildLoad, LOAD_CORE, type LoadResult, median, printTable, processorMs, type Row, scratch } from './stack.ts';

const TENANTS = 20;
const KEYS = 200;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 15);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 60_000);
/** Enough for the leases to know the demand. */
const WARM = Math.ceil(CALLS / 3);
/** The maximum time of a check, and the minimum throughput of two servers, as shares of those without. */
const MOST_TIME = 1.15;
const LEAST_THROUGHPUT = 0.9;
const HUGE = 8_000_000_000_000_000;

/** The second half of the tenants has 16 budgets, of which 8 are each key's own, and its keys have 8 limits by model. */
async function limit(client: pg.Client): Promise<void> {
  await populate(client, { tenants: TENANTS, keys: KEYS, usable: KEYS });
  await client.query(
    `insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to, per)
     select 'bud_' || lpad(to_hex(16 * tenant + i), 26, '0'), 'tenant-' || tenant, 'budget-' || i,
       (array['money', 'tokens', 'requests'])[1 + i % 3], $1::bigint, (array['hour', 'day', 'week', 'month', 'total'])[1 + i % 5],
       '{"tenant": true}', (array['all', 'key'])[1 + i % 2]
     from generate_series($2::int, $3::int) tenant, generate_series(0, 15) i`,
    [HUGE, TENANTS / 2, TENANTS - 1],
  );
  const rates = ['llama-3-8b', 'llama-3-*', 'llama-*', '*', 'a-*', 'b-*', 'c-*', 'd-*'].map((glob) => ({
    models: [glob],
    requests_per_minute: 100_000_000,
    tokens_per_minute: 2_000_000_000,
    parallel: 10_000_000,
  }));
  await client.query(
    `update api_keys set rate_limits = $3 where tenant_id = any (select 'tenant-' || i from generate_series($1::int, $2::int) i)`,
    [TENANTS / 2, TENANTS - 1, JSON.stringify(rates)],
  );
  const price = { models: 'llama-*', input: 200_000_000, output: 600_000_000 };
  await client.query('insert into price_lists (version, prices) values (1, $1)', [JSON.stringify([price])]);
}

interface Subject {
  readonly name: string;
  readonly frames: string;
  /** For one server and for both: checks per second, and microseconds of processor time for a check. */
  readonly perSecond: readonly [number[], number[]];
  readonly processorUs: readonly [number[], number[]];
  refused: number;
}

export async function budgetsOfKeys(): Promise<{ readonly rows: readonly Row[]; readonly broken: readonly string[] }> {
  const directory = scratch();
  const load = buildLoad(directory);
  const body = chatBody('llama-3-8b');
  await using world = await openWorld(join(directory, 'world'), limit);
  await using stack = new AsyncDisposableStack();
  const servers: ServerUnderTest[] = [];
  for (let i = 0; i < 2; i++) {
    const server = await world.start();
    stack.defer(() => server.stop());
    servers.push(server);
  }

  const subject = (name: string, from: number): Subject => {
    const frames = join(directory, `budgets-${from}.bin`);
    const keys = Array.from({ length: KEYS }, (_, i) => i).filter(
      (i) => i % TENANTS >= from && i % TENANTS < from + TENANTS / 2,
    );
    const chat = (i: number): Buffer =>
      encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${keyText(i)}`, body });
    writeFrames(frames, keys.map(chat));
    return { name, frames, perSecond: [[], []], processorUs: [[], []], refused: 0 };
  };
  const plain = subject('without', 0);
  const bounded = subject('16 budgets and 8 limits by model', TENANTS / 2);

  const run = async (each: Subject, some: readonly ServerUnderTest[], warm: number): Promise<void> => {
    const usedMs = some.map(({ pid }) => processorMs(pid));
    const results = await Promise.all(some.map(({ grpc }) => loadOf(load, grpc, each.frames, warm)));
    const spentMs = some.reduce((sum, { pid }, i) => sum + processorMs(pid) - (usedMs[i] ?? 0), 0);
    const at = some.length === 1 ? 0 : 1;
    each.perSecond[at].push(results.reduce((sum, { per_s }) => sum + per_s, 0));
    each.processorUs[at].push((1000 * spentMs) / (some.length * (CALLS + warm)));
    for (const { codes, failed } of results)
      each.refused += Object.entries(codes).reduce((sum, [code, count]) => (code === '0' ? sum : sum + count), failed);
  };
  const runs = [servers.slice(0, 1), servers];
  for (const each of [plain, bounded]) {
    for (const some of runs) await run(each, some, WARM);
    for (const figures of [...each.perSecond, ...each.processorUs]) figures.length = 0;
  }
  // Each round begins with the other subject, because the machine's speed changes slowly.
  for (let round = 0; round < ROUNDS; round++)
    for (const each of round % 2 === 0 ? [plain, bounded] : [bounded, plain])
      for (const some of runs) await run(each, some, WARM);

  const ratioOf = (figures: readonly number[], others: readonly number[]): number =>
    median(figures.map((figure, i) => figure / (others[i] ?? Number.NaN)));
  const rows = [plain, bounded].flatMap((each) =>
    ([0, 1] as const).map(
      (at): Row => ({
        'warm chat check, 1 KB body': each.name,
        servers: at + 1,
        'checks/s': Math.round(median(each.perSecond[at])),
        'of without': ratioOf(each.perSecond[at], plain.perSecond[at]).toFixed(3),
        'processor us per check': median(each.processorUs[at]).toFixed(1),
        'of without ': ratioOf(each.processorUs[at], plain.processorUs[at]).toFixed(3),
        refused: each.refused,
      }),
    ),
  );
  printTable(
    `16 budgets and 8 limits by model on each of ${KEYS / 2} keys; medians of ${ROUNDS} rounds, ratios round by round. Goals: ` +
      `${MOST_TIME} of the processor time on one server, ${LEAST_THROUGHPUT} of the throughput of two`,
    rows,
  );
  const time = ratioOf(bounded.processorUs[0], plain.processorUs[0]);
  const throughput = ratioOf(bounded.perSecond[1], plain.perSecond[1]);
  const broken: string[] = [];
  if (time > MOST_TIME) broken.push(`16 budgets and 8 limits by model: ${time.toFixed(3)} of the processor time`);
  if (throughput < LEAST_THROUGHPUT) broken.push(`budgets of two servers: ${throughput.toFixed(3)} of the throughput`);
  if (bounded.refused > 0) broken.push(`${bounded.refused} checks were refused`);
  return { rows, broken };
}

const started = promisify(execFile);

/** Runs the load without blocking, so that two servers have theirs at the same time. */
async function loadOf(load: string, address: string, frames: string, warm: number): Promise<LoadResult> {
  const flags = { addr: address, frames, n: CALLS, conns: 2, streams: 16, warm };
  const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]);
  const { stdout } = await started('taskset', ['-c', LOAD_CORE, load, ...args]);
  return JSON.parse(stdout);
}
