/**
 * The largest rules that one tenant may have (1 MiB as stored), in shapes that make them dear: how long reading and
 * compiling them takes in all, the longest time for which they hold the event loop (each the best of several runs,
 * since other processes only add to it), and the memory of the result beside the estimate that bounds the cache.
 *
 * node --expose-gc bench/micro/rules.ts [runs]
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { weightOfTenant } from '../../src/credential-cache/rules-weight.ts';
import { onEventLoop, Slices } from '../../src/credential-cache/slices.ts';
import { compileTenantInSteps } from '../../src/decision/compile.ts';
import type { TenantView } from '../../src/decision/model.ts';
import { finish, type Steps } from '../../src/domain/steps.ts';
import { tenantRecord } from '../../src/store/rows.ts';

const RUNS = Number(process.argv[2] ?? 9);
const MAX_BYTES = 1_048_576;
/** As the store cuts them. */
const PIECE_BYTES = 32_768;
/** The bytes that the store counts for a row beside its texts. */
const ROW_BYTES = 128;

type Lists = { readonly actions?: string[]; readonly resources?: string[]; readonly conditions?: object };

const times = (count: number, make: (n: number) => string): string[] =>
  Array.from({ length: count }, (_none, n) => make(n));
const models = (count: number, make: (n: number) => string) => ({
  resources: times(count, (n) => `models/${make(n)}`),
});
/** Four for each hour, some minutes apart. */
const minute = (n: number, later: number) =>
  [n % 24, 10 * (Math.floor(n / 24) % 4) + later].map((part) => String(part).padStart(2, '0')).join(':');

const SHAPES: Readonly<Record<string, (i: number) => Lists>> = {
  'policies that say nothing': () => ({}),
  'actions, all different': (i) => ({ actions: times(200, (n) => `a${i}:x${n}`) }),
  'short names': (i) => models(200, (n) => `${i}-${n}`),
  'long names': (i) => models(200, (n) => `${i}-${n}-`.padEnd(249, 'x')),
  'globs of eight stars': (i) => models(200, (n) => `*a*b*c*d*e*f*${i}*${n}*`),
  'IPv4 networks': (i) => ({
    conditions: { ip_address: { in: times(1000, (n) => `10.${i % 256}.${n >> 8}.${n % 256}`) } },
  }),
  'weekly hours': (i) => ({
    conditions: { weekly_hours: { in: times(84, (n) => `Mon-Sun ${minute(n, i % 8)}-${minute(n, (i % 8) + 1)}`) } },
  }),
  'one window': (i) => ({ conditions: { weekly_hours: { in: [`Mon-Sun ${minute(i, 0)}-${minute(i, 1)}`] } } }),
  days: (i) => ({ conditions: { day_of_week: { in: times(1000, (n) => ((i + n) % 2 === 0 ? 'Sat' : 'Sun')) } } }),
  'IPv6 networks': (i) => ({ conditions: { ip_address: { in: times(1000, (n) => `a${i}::${n.toString(16)}`) } } }),
};

/** Pieces of JSON as the store brings them. */
function piecesOf(shape: (i: number) => Lists): { readonly pieces: string[]; readonly policies: number } {
  const pieces: string[] = [];
  let piece: unknown[] = [];
  let [pieceBytes, bytes, policies] = [0, 0, 0];
  for (;;) {
    const { actions = ['*'], resources = ['*'], conditions = {} } = shape(policies);
    const name = `p${String(policies).padStart(5, '0')}`;
    const texts = [...actions, ...resources];
    const size = ROW_BYTES + name.length + JSON.stringify(conditions).length + texts.join().length + 3;
    if (bytes + size > MAX_BYTES) break;
    piece.push([name, 'deny', actions, resources, conditions, 'everyone', true, []]);
    policies++;
    bytes += size;
    pieceBytes += size;
    if (pieceBytes < PIECE_BYTES) continue;
    pieces.push(JSON.stringify(piece));
    piece = [];
    pieceBytes = 0;
  }
  pieces.push(JSON.stringify(piece));
  return { pieces, policies };
}

function* compiled(pieces: readonly string[]): Steps<{ readonly view: TenantView; readonly weight: number }> {
  // As from the socket: nothing shared with a run before.
  const policies = pieces.map((piece) => Buffer.from(piece).toString());
  const record = yield* tenantRecord(
    { id: 'acme', status: 'active', settings: {}, quotas: {} },
    { roles: [], budgets: [], policies },
  );
  return { view: yield* compileTenantInSteps(record), weight: yield* weightOfTenant(record) };
}

/** The longest turn of the event loop while `work` ran, in milliseconds. */
async function longestBlock(work: Promise<unknown>): Promise<number> {
  let longest = 0;
  let over = false;
  void work.finally(() => {
    over = true;
  });
  for (let last = performance.now(); !over; ) {
    await nextTurn();
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
  return longest;
}

const collect = globalThis.gc;
if (collect === undefined) throw new Error('run with --expose-gc');
const MB = 1_048_576;
const heap = (): number => {
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};

function measureMemory(pieces: readonly string[]): {
  readonly memory: number;
  readonly weight: number;
  readonly kept: number;
} {
  const before = heap();
  const { view, weight } = finish(compiled(pieces));
  const memory = heap() - before;
  return { memory, weight, kept: view.policies.denies.policies.length };
}

console.log('shape                       policies   work ms   at once ms   longest block ms   memory MB   estimate MB');
for (const [name, shape] of Object.entries(SHAPES)) {
  const { pieces, policies } = piecesOf(shape);
  const blocks: number[] = [];
  const works: number[] = [];
  const wholes: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const slices = new Slices({ monotonicMs: () => performance.now(), later: onEventLoop });
    await nextTurn();
    const work = Promise.resolve(slices.run(compiled(pieces), () => true));
    blocks.push(await longestBlock(work));
    works.push((await work).spentMs);
    const from = performance.now();
    finish(compiled(pieces));
    wholes.push(performance.now() - from);
  }
  const { memory, weight, kept } = measureMemory(pieces);
  const best = (values: readonly number[]): string => Math.min(...values).toFixed(1);
  console.log(
    name.padEnd(26),
    String(kept === policies ? policies : Number.NaN).padStart(9),
    best(works).padStart(9),
    best(wholes).padStart(12),
    best(blocks).padStart(18),
    (memory / MB).toFixed(1).padStart(11),
    (weight / MB).toFixed(1).padStart(13),
  );
}
