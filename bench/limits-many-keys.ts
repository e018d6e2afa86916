/**
 * Many keys with a rate limit of their own, each used once in a window, all of them shortly before its border: for how
 * long do their leases block the event loop, and how long does a check wait? The limits run in this process, on a real
 * PostgreSQL. A block is what the main thread computed between two turns of a timer, in processor time, so that other
 * programs on the machine do not count.
 */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreClock } from '../src/domain/store-clock.ts';
import { RateLeases } from '../src/metering/rate-leases.ts';
import { openDatabase } from '../src/store/database.ts';
import { openMetering, postgresMetering } from '../src/store/metering/metering.ts';
import { newCounts } from '../src/telemetry/metering-counts.ts';
import { openWorld } from './server-under-test.ts';
import { printTable, type Row, scratch } from './stack.ts';

const KEYS = Number(process.env['BENCH_LIMITS_KEYS'] ?? 100_000);
const WINDOW_MS = 1000 * Number(process.env['BENCH_LIMITS_WINDOW_SECONDS'] ?? 20);
/** Before each border. */
const USED_WITHIN_MS = 1000 * Number(process.env['BENCH_LIMITS_USED_WITHIN_SECONDS'] ?? 4);
/** The first window only makes the keys known. */
const WINDOWS = 1 + Number(process.env['BENCH_LIMITS_WINDOWS'] ?? 2);
const OF_KEY = { level: 'key', models: ['*'], dimension: 'requests_per_minute' } as const;
/** Large enough for slices. */
const LIMIT = 600;
const STEP_MS = 5;
const TICK_MS = 100;
const MOST_BLOCKED_MS = 50;
const LONG_MS = 10;
const MOST_AT_ONCE = 500;

interface Blocks {
  longestMs: number;
  /** The same by the wall clock. */
  longestWallMs: number;
  /** Of all that were longer than `LONG_MS`. */
  sumMs: number;
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

export async function manyKeys(): Promise<{ readonly rows: readonly Row[]; readonly broken: readonly string[] }> {
  await using world = await openWorld(join(scratch(), 'world'), () => Promise.resolve());
  const db = openDatabase({ url: world.url });
  const pool = openMetering(db);
  const leases = new RateLeases({
    store: postgresMetering(pool),
    processId: 'bench',
    windowMs: WINDOW_MS,
    clock: new StoreClock(),
    monotonicMs: () => performance.now(),
    now: Date.now,
    maxSubjects: 200_000,
    counts: newCounts(),
  });
  const blocks: Blocks = { longestMs: 0, longestWallMs: 0, sumMs: 0 };
  const waitedMs: number[] = [];
  let failed = 0;
  const use = (key: number): void => {
    const askedMs = performance.now();
    try {
      const taken = leases.consume([leases.subject('key', `key_${key}`, OF_KEY, LIMIT, askedMs)], 1);
      if (taken instanceof Promise) void taken.then(() => waitedMs.push(performance.now() - askedMs));
      else waitedMs.push(0);
    } catch {
      failed += 1;
    }
  };
  const ticking = setInterval(() => void leases.tick(), TICK_MS);
  await sleep(WINDOW_MS - (Date.now() % WINDOW_MS));
  const beganMs = Date.now();
  let beforeMs = cpuMs();
  let beforeWallMs = performance.now();
  let window = 0;
  for (let done = 0; Date.now() - beganMs < WINDOWS * WINDOW_MS; ) {
    await sleep(STEP_MS);
    const blockedMs = cpuMs() - beforeMs;
    const passedMs = Date.now() - beganMs;
    if (passedMs > WINDOW_MS - USED_WITHIN_MS) {
      blocks.longestMs = Math.max(blocks.longestMs, blockedMs);
      blocks.longestWallMs = Math.max(blocks.longestWallMs, performance.now() - beforeWallMs - STEP_MS);
      if (blockedMs > LONG_MS) blocks.sumMs += blockedMs;
    }
    if (Math.floor(passedMs / WINDOW_MS) !== window) {
      window = Math.floor(passedMs / WINDOW_MS);
      done = 0;
    }
    const due = KEYS * Math.max(0, 1 - (WINDOW_MS - (passedMs % WINDOW_MS)) / USED_WITHIN_MS);
    // A pause does not become a burst: the rest follows with the next steps.
    for (let n = 0; done < due && n < MOST_AT_ONCE; n++) use(done++);
    // The turn that uses keys is not counted, only those in between.
    beforeMs = cpuMs();
    beforeWallMs = performance.now();
  }
  clearInterval(ticking);
  await leases.stop();
  await pool.close();
  await db.close();
  waitedMs.sort((a, b) => a - b);
  const p99 = waitedMs[Math.floor(waitedMs.length * 0.99)] ?? 0;
  const rows = [
    {
      keys: KEYS,
      'used within (s)': USED_WITHIN_MS / 1000,
      'longest block (ms)': blocks.longestMs.toFixed(0),
      [`blocks above ${LONG_MS} ms, together (ms)`]: blocks.sumMs.toFixed(0),
      'longest by the wall clock (ms)': blocks.longestWallMs.toFixed(0),
      'wait of a check, p99 (ms)': p99.toFixed(0),
      'found the queue full': failed,
    },
  ];
  printTable(`Event loop at the borders of ${WINDOWS} windows of ${WINDOW_MS / 1000} s`, rows);
  const { longestMs } = blocks;
  const broken =
    longestMs > MOST_BLOCKED_MS ? [`many keys: the event loop was blocked for ${longestMs.toFixed(0)} ms`] : [];
  return { rows, broken };
}
