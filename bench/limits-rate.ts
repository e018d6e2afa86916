/** Three servers on one PostgreSQL share a tenant's rate: undisturbed, with one killed, and with PostgreSQL stopped. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeFrame } from './frames.ts';
import { byWindow, clockMs, type Offered, offer, type WindowCount } from './limits-load.ts';
import { keyText, populate } from './population.ts';
import { openWorld, type ServerUnderTest, type World } from './server-under-test.ts';
import { printTable, type Row, scratch } from './stack.ts';

const SERVERS = 3;
const LIMIT = 6000;
/** Offered in each window. */
const OFFERED = 20_000;
/** A shorter window makes the same load a faster one. */
const WINDOW_MS = 1000 * Number(process.env['BENCH_LIMITS_WINDOW_SECONDS'] ?? 15);
const WINDOWS = Number(process.env['BENCH_LIMITS_WINDOWS'] ?? 4);
const OUTAGE_MS = 20_000;
/** The minimum used share of the limit. */
const USED = 0.95;

interface Run {
  readonly name: string;
  /** Whole windows to look at. */
  readonly windows: number;
  /** A disturbance during the run; resolves with its times, from which the affected windows follow. */
  readonly disturb?: (world: World, servers: readonly ServerUnderTest[], beginMs: number) => Promise<Disturbance>;
}

/** Milliseconds since the epoch. */
interface Disturbance {
  readonly fromMs: number;
  readonly untilMs: number;
}

const RUNS: readonly Run[] = [
  { name: 'three servers', windows: WINDOWS },
  {
    name: 'one killed half-way',
    windows: WINDOWS,
    async disturb(_world, servers, beginMs) {
      // Half of the windows are over, and some of the next is used.
      await until(beginMs + (Math.floor(WINDOWS / 2) + 0.1) * WINDOW_MS);
      const fromMs = clockMs();
      await servers[0]?.stop('SIGKILL');
      return { fromMs, untilMs: fromMs };
    },
  },
  {
    name: 'PostgreSQL stopped for 20 s',
    windows: 3 + Math.ceil(OUTAGE_MS / WINDOW_MS),
    async disturb(world, _servers, beginMs) {
      await until(beginMs + 1.1 * WINDOW_MS);
      const fromMs = clockMs();
      const start = await world.stopDatabase();
      await sleep(OUTAGE_MS);
      await start();
      return { fromMs, untilMs: clockMs() };
    },
  },
];

function until(ms: number): Promise<void> {
  return sleep(Math.max(0, ms - clockMs()));
}

export async function ratesAcrossServers(): Promise<{
  readonly rows: readonly Row[];
  readonly broken: readonly string[];
}> {
  const rows: Row[] = [];
  const broken: string[] = [];
  for (const run of RUNS) {
    const { offered, disturbance } = await measure(run);
    for (const count of byWindow(offered.admitted, WINDOW_MS, SERVERS)) {
      const most = bound(count, disturbance);
      const least = disturbance === undefined || run.name.startsWith('one') ? LIMIT * USED : 0;
      const holds = count.certain <= most && count.certain + count.perhaps >= least;
      if (!holds) broken.push(`${run.name}: ${count.certain} admitted in window ${count.window}`);
      rows.push({
        'a tenant of 6,000 per window': run.name,
        admitted: count.certain,
        'at a border': count.perhaps,
        'by each server': count.byServer.join(' + '),
        'at most': most,
        'at least': least,
        holds: holds ? 'yes' : 'NO',
      });
    }
    console.log(`${run.name}: ${offered.sent} sent, ${offered.refused} refused, ${offered.lost} without an answer`);
  }
  printTable(`Rates over ${SERVERS} servers: ${OFFERED} offered in each window of ${WINDOW_MS / 1000} s`, rows);
  return { rows, broken };
}

async function measure({ windows, disturb }: Run): Promise<{ offered: Offered; disturbance: Disturbance | undefined }> {
  await using world = await openWorld(join(scratch(), 'world'), async (client) => {
    await populate(client, { tenants: 1, keys: 1, usable: 1 });
    await client.query(`update tenants set settings = settings || jsonb_build_object('rate_limit_rpm', $1::int)`, [
      LIMIT,
    ]);
  });
  await using stack = new AsyncDisposableStack();
  const servers: ServerUnderTest[] = [];
  for (let i = 0; i < SERVERS; i++) {
    const server = await world.start({
      settings: { POSTERN_LIMITS_WINDOW: `${WINDOW_MS / 1000}s`, POSTERN_LOG_LEVEL: 'error' },
    });
    servers.push(server);
    stack.defer(() => server.stop());
  }
  // The first whole window; what is before it warms the servers up.
  const beginMs = (Math.floor(clockMs() / WINDOW_MS) + 1) * WINDOW_MS;
  const frame = encodeFrame({ method: 'GET', path: '/v1/chat/history', authorization: `Bearer ${keyText(0)}` });
  const disturbing = disturb?.(world, servers, beginMs);
  const offered = await offer({
    addresses: servers.map(({ grpc }) => grpc),
    frame,
    perSecond: (OFFERED * 1000) / WINDOW_MS,
    untilMs: beginMs + (windows + 0.2) * WINDOW_MS,
  });
  return { offered, disturbance: await disturbing };
}

/**
 * The bound of docs/limits.md. In the windows in which the database goes away and comes back: the limit, and the shares
 * of all processes but one. In all others the limit.
 */
function bound({ window }: WindowCount, disturbance: Disturbance | undefined): number {
  if (disturbance === undefined || disturbance.fromMs === disturbance.untilMs) return LIMIT;
  const touched = [disturbance.fromMs, disturbance.untilMs].some((ms) => Math.floor(ms / WINDOW_MS) === window);
  return touched ? LIMIT + (SERVERS - 1) * Math.floor(LIMIT / SERVERS) : LIMIT;
}
