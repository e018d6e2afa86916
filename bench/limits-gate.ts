/**
 * The cost of limits: a warm chat check of tenants without limits beside one of tenants with a rate and a monthly
 * quota, on one server.
 */

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text as consume } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { keyText, populate } from './population.ts';
import { openWorld } from './server-under-test.ts';
import { buildLoad, type LoadResult, median, printTable, type Row, runLoad, scratch } from './stack.ts';

const TENANTS = 100;
const KEYS = 10_000;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 7);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 60_000);
const ALONE = Math.min(8000, CALLS);
/** The minimum share of the run without limits. */
const LEAST_THROUGHPUT = 0.92;
const MOST_P99_ALONE = 1.15;
const MOST_STATEMENTS = 2;

interface Subject {
  readonly name: string;
  readonly frames: string;
  readonly throughput: LoadResult[];
  readonly alone: LoadResult[];
  /** Sent by limits, and transactions of all kinds, for each 1,000 checks under load. */
  readonly statements: number[];
  readonly transactions: number[];
}

/** The second half of the tenants has limits, and so do the keys of the last quarter. No request is rejected. */
async function limit(client: pg.Client): Promise<void> {
  await populate(client, { tenants: TENANTS, keys: KEYS, usable: KEYS });
  await client.query(
    `update tenants set settings = settings || '{"rate_limit_rpm":100000000}', quotas = quotas || '{"monthly_tokens":1000000000000}'
     where id = any (select 'tenant-' || i from generate_series($1::int, $2::int) i)`,
    [TENANTS / 2, TENANTS - 1],
  );
  await client.query(
    `update api_keys set rate_limit_rpm = 100000000
     where tenant_id = any (select 'tenant-' || i from generate_series($1::int, $2::int) i)`,
    [(TENANTS * 3) / 4, TENANTS - 1],
  );
}

export async function gateWithLimits(): Promise<{ readonly rows: readonly Row[]; readonly broken: readonly string[] }> {
  const directory = scratch();
  const load = buildLoad(directory);
  const body = chatBody('llama-3-8b');
  await using world = await openWorld(join(directory, 'world'), limit);
  await using stack = new AsyncDisposableStack();
  const server = await world.start();
  stack.defer(() => server.stop());
  const client = new pg.Client({ connectionString: world.url });
  await client.connect();
  stack.defer(() => client.end());

  const subject = (name: string, from: number, to: number): Subject => {
    const frames = join(directory, `${from}.bin`);
    const keys = Array.from({ length: KEYS }, (_, i) => i).filter((i) => i % TENANTS >= from && i % TENANTS < to);
    const chat = (i: number): Buffer =>
      encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${keyText(i)}`, body });
    writeFrames(frames, keys.map(chat));
    return { name, frames, throughput: [], alone: [], statements: [], transactions: [] };
  };
  const plain = subject('without limits', 0, TENANTS / 2);
  const subjects = [
    plain,
    subject('tenant: rate and monthly tokens', TENANTS / 2, (TENANTS * 3) / 4),
    subject('and a rate of the key', (TENANTS * 3) / 4, TENANTS),
  ];
  for (const { frames } of subjects) runLoad(load, server.grpc, frames, { calls: CALLS, warm: KEYS });
  for (let round = 0; round < ROUNDS; round++) {
    for (const each of subjects) {
      const before = { sent: await statements(server.admin), done: await transactions(client) };
      const calls = { calls: CALLS, warm: 4000 };
      each.throughput.push(runLoad(load, server.grpc, each.frames, calls));
      const thousands = (calls.calls + calls.warm) / 1000;
      each.statements.push(((await statements(server.admin)) - before.sent) / thousands);
      each.transactions.push(((await transactions(client)) - before.done) / thousands);
      each.alone.push(runLoad(load, server.grpc, each.frames, { calls: ALONE, connections: 1, streams: 1, warm: 500 }));
    }
  }
  const broken: string[] = [];
  const rows = subjects.map((each): Row => {
    const ratio = (kind: 'throughput' | 'alone', figure: 'per_s' | 'p99_us'): number =>
      median(each[kind].map((result, i) => result[figure] / (plain[kind][i]?.[figure] ?? Number.NaN)));
    const figures = {
      throughput: ratio('throughput', 'per_s'),
      p99: ratio('alone', 'p99_us'),
      asked: median(each.statements),
    };
    if (figures.throughput < LEAST_THROUGHPUT)
      broken.push(`${each.name}: ${figures.throughput.toFixed(2)} of the throughput`);
    if (figures.p99 > MOST_P99_ALONE) broken.push(`${each.name}: ${figures.p99.toFixed(2)} of the p99 alone`);
    if (figures.asked > MOST_STATEMENTS)
      broken.push(`${each.name}: ${figures.asked.toFixed(2)} statements per 1,000 checks`);
    return {
      'warm chat check, 1 KB body': each.name,
      'checks/s': Math.round(median(each.throughput.map(({ per_s }) => per_s))),
      'of the first': figures.throughput.toFixed(3),
      'p99 us alone': Math.round(median(each.alone.map(({ p99_us }) => p99_us))),
      'of the first ': figures.p99.toFixed(3),
      'statements per 1,000': figures.asked.toFixed(2),
      'transactions per 1,000': median(each.transactions).toFixed(2),
      refused: each.throughput.concat(each.alone).reduce((sum, result) => sum + refusedOf(result), 0),
    };
  });
  printTable(
    `Limits at the gate: ${KEYS} keys, ${TENANTS} tenants; medians of ${ROUNDS} rounds, ratios round by round. Goals: ` +
      `${LEAST_THROUGHPUT} of the throughput, ${MOST_P99_ALONE} of the p99 alone, ${MOST_STATEMENTS} statements of limits per 1,000 checks`,
    rows,
  );
  return { rows, broken };
}

/** Returns the statements of limits since the start of the server. */
async function statements(admin: string): Promise<number> {
  // A connection of its own: one that was kept has been closed unseen while this process waited for the load.
  const [answer] = (await once(get(`http://${admin}/metrics`, { agent: false }), 'response')) as [IncomingMessage];
  const text = await consume(answer);
  return Number(/^postern_metering_statements_total (\S+)$/m.exec(text)?.[1] ?? Number.NaN);
}

/** Returns the transactions of the whole database from its statistics, which are written within a second. */
async function transactions(client: pg.Client): Promise<number> {
  await sleep(1500);
  const { rows } = await client.query<{ count: string }>(
    'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
  );
  return Number(rows[0]?.count);
}

function refusedOf({ codes, failed }: LoadResult): number {
  return Object.entries(codes).reduce((sum, [code, count]) => (code === '0' ? sum : sum + count), failed);
}
