/**
 * The cost of a rate limit of its own for each of many keys, each used a few times a second: the throughput of warm
 * chat checks beside that of the same number of keys without a rate limit, on one server, and the checks of a key that
 * wait for a lease in one window.
 */

import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text as consume } from 'node:stream/consumers';
import type pg from 'pg';
import { chatBody, encodeFrame, writeFrames } from './frames.ts';
import { keyText, populate } from './population.ts';
import { openWorld } from './server-under-test.ts';
import { buildLoad, type LoadResult, median, printTable, processorMs, type Row, runLoad, scratch } from './stack.ts';

const KEYS = 2500;
const TENANTS = 100;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 30);
const CALLS = Number(process.env['BENCH_CALLS'] ?? 20_000);
/** Requests a minute: several times what a key uses here, so that none is refused. */
const LIMIT = Number(process.env['BENCH_LIMITS_KEY_RPM'] ?? 6000);
const WINDOW_MS = 60_000;
const WARM = 4000;
/** The minimum share of the run without rate limits. */
const LEAST_THROUGHPUT = 0.95;
/** Checks that wait, of a key in a window. */
const MOST_WAITS = 1;

/** The second half of the keys has a rate of its own. */
async function limit(client: pg.Client): Promise<void> {
  await populate(client, { tenants: TENANTS, keys: 2 * KEYS, usable: 2 * KEYS });
  const limited = Array.from({ length: KEYS }, (_, i) => keyIdOf(KEYS + i));
  await client.query('update api_keys set rate_limit_rpm = $2 where id = any ($1)', [limited, LIMIT]);
}

/** As `populate` makes them. */
function keyIdOf(index: number): string {
  return `key_${index.toString(16).padStart(26, '0')}`;
}

interface Subject {
  readonly name: string;
  readonly frames: string;
  readonly results: LoadResult[];
  /** The processor time of the server for a check, in microseconds. Other programs on the machine affect it less. */
  readonly processorUs: number[];
}

export async function ownRates(): Promise<{ readonly rows: readonly Row[]; readonly broken: readonly string[] }> {
  const directory = scratch();
  const load = buildLoad(directory);
  const body = chatBody('llama-3-8b');
  await using world = await openWorld(join(directory, 'world'), limit);
  await using stack = new AsyncDisposableStack();
  const server = await world.start();
  stack.defer(() => server.stop());
  const subject = (name: string, from: number): Subject => {
    const frames = join(directory, `own-${from}.bin`);
    const chat = (i: number): Buffer =>
      encodeFrame({ method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${keyText(from + i)}`, body });
    writeFrames(
      frames,
      Array.from({ length: KEYS }, (_, i) => chat(i)),
    );
    return { name, frames, results: [], processorUs: [] };
  };
  const plain = subject('without a rate', 0);
  const own = subject('a rate of its own for each key', KEYS);
  /** The windows in which keys with a rate were used. */
  const windows = new Set<number>();
  const run = (each: Subject, warm: number): LoadResult => {
    const [beganMs, usedMs] = [Date.now(), processorMs(server.pid)];
    const result = runLoad(load, server.grpc, each.frames, { calls: CALLS, warm });
    each.processorUs.push(((processorMs(server.pid) - usedMs) * 1000) / (CALLS + warm));
    if (each === own)
      for (let at = Math.floor(beganMs / WINDOW_MS); at <= Math.floor(Date.now() / WINDOW_MS); at++) windows.add(at);
    return result;
  };
  for (const each of [plain, own]) {
    run(each, KEYS);
    each.processorUs.length = 0;
  }
  // Short rounds, and each begins with the other: the machine's speed changes slowly, so what is beside each other met
  // the same.
  for (let round = 0; round < ROUNDS; round++)
    for (const each of round % 2 === 0 ? [plain, own] : [own, plain]) each.results.push(run(each, WARM));
  const waits = await waited(server.admin);
  const ratio = median(own.results.map((result, i) => result.per_s / (plain.results[i]?.per_s ?? Number.NaN)));
  const waitsEach = waits / (KEYS * windows.size);
  const rows = [plain, own].map(
    (each): Row => ({
      [`warm chat check, ${KEYS} keys`]: each.name,
      'checks/s': Math.round(median(each.results.map(({ per_s }) => per_s))),
      'of the first': each === plain ? '1' : ratio.toFixed(3),
      'processor us per check': median(each.processorUs).toFixed(1),
      'p99 us under load': Math.round(median(each.results.map(({ p99_us }) => p99_us))),
      'waits per key and window': each === plain ? '' : waitsEach.toFixed(3),
      refused: each.results.reduce((sum, result) => sum + refusedOf(result), 0),
    }),
  );
  printTable(
    `A rate of its own for each of ${KEYS} keys, ${LIMIT} requests a minute; medians of ${ROUNDS} rounds, ratio round by round, ` +
      `${windows.size} windows. Goals: ${LEAST_THROUGHPUT} of the throughput, ${MOST_WAITS} wait`,
    rows,
  );
  const broken: string[] = [];
  if (ratio < LEAST_THROUGHPUT) broken.push(`a rate of each key: ${ratio.toFixed(3)} of the throughput`);
  if (waitsEach > MOST_WAITS) broken.push(`a rate of each key: ${waitsEach.toFixed(2)} waits per key and window`);
  return { rows, broken };
}

async function waited(admin: string): Promise<number> {
  // A connection of its own: one that was kept has been closed unseen while this process waited for the load.
  const [answer] = (await once(get(`http://${admin}/metrics`, { agent: false }), 'response')) as [IncomingMessage];
  const text = await consume(answer);
  return Number(/^postern_rate_waited_total (\S+)$/m.exec(text)?.[1] ?? 0);
}

function refusedOf({ codes, failed }: LoadResult): number {
  return Object.entries(codes).reduce((sum, [code, count]) => (code === '0' ? sum : sum + count), failed);
}
