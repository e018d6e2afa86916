/**
 * Searches, for each route that takes a body, for the body that holds the event loop longest: random bodies first, then
 * changes of those that were dearest. BENCH_SECONDS sets how long it searches for each route (default: 4 s); BENCH_SEED
 * repeats a search.
 */

import { BODY_BOUNDS } from '../src/http/body-structure.ts';
import type { Endpoint } from '../src/http/endpoint.ts';
import { printTable, type Row, writeResult } from './stack.ts';
import { bodyOf, type Gene, mutated, type Places, placesOf, randomGene } from './worst-body-genes.ts';
import { openStand, type Stand } from './worst-body-stand.ts';

const BOUND_MS = 50;
const SEARCH_MS = Number(process.env['BENCH_SECONDS'] ?? 4) * 1000;
const SEED = Number(process.env['BENCH_SEED'] ?? 1);
const RANDOM_SHARE = 0.4;
const KEPT = 6;
/** The cost of a body is the minimum of this number of runs, because other work on the machine only adds to it. */
const RUNS = 5;
/** Runs of each of the dearest bodies in the end, among which a longer pause of the machine does not count. */
const LAST_RUNS = 20;

interface Found {
  readonly gene: Gene;
  readonly costMs: number;
}

export async function worstBody(): Promise<void> {
  await using stand = await openStand();
  const random = mulberry32(SEED);
  const routes = stand.routes.filter((route) => route.method !== 'GET');
  // The first runs of any code are slower than it is.
  for (const route of routes) await search(stand, route, placesOf(route), random, 150);
  const rows: Row[] = [];
  const found = [];
  for (const route of routes) {
    const places = placesOf(route);
    const { tried, best } = await search(stand, route, places, random, takesMembers(route) ? SEARCH_MS : SEARCH_MS / 8);
    const body = bodyOf(best.gene, places, route.maxBodyBytes);
    const place = places.paths[best.gene.place]?.join('/') ?? '';
    const shape = `${best.gene.filler} at /${place}`;
    rows.push({
      route: `${route.method} ${route.path}`,
      'limit KiB': route.maxBodyBytes / 1024,
      tried,
      'worst ms': best.costMs.toFixed(1),
      'its KiB': (Buffer.byteLength(body) / 1024).toFixed(0),
      shape,
    });
    found.push({
      route: `${route.method} ${route.path}`,
      limitBytes: route.maxBodyBytes,
      tried,
      worstMs: best.costMs,
      shape,
      begins: body.slice(0, 300),
    });
  }
  rows.sort((a, b) => Number(b['worst ms']) - Number(a['worst ms']));
  printTable(`The dearest body of each route, found in ${SEARCH_MS / 1000} s (seed ${SEED})`, rows);
  const heads = await headRows(stand);
  printTable('The dearest query and headers, of 30 KiB each', heads);
  const worstMs = Math.max(...rows.map((row) => Number(row['worst ms'])), ...heads.map((row) => Number(row['ms'])));
  console.log(`\nWorst of all: ${worstMs} ms; the bound is ${BOUND_MS} ms: ${worstMs < BOUND_MS ? 'held' : 'BROKEN'}.`);
  if (worstMs >= BOUND_MS) process.exitCode = 1;
  writeResult('worst-body', { boundMs: BOUND_MS, worstMs, seed: SEED, bounds: BODY_BOUNDS, routes: found, heads });
}

function takesMembers({ bodySchema }: Endpoint): boolean {
  return 'properties' in bodySchema && Object.keys(Object(bodySchema.properties)).length > 0;
}

async function search(stand: Stand, route: Endpoint, places: Places, random: () => number, searchMs: number) {
  const best: Found[] = [];
  const began = performance.now();
  let tried = 0;
  const elapsed = (): number => performance.now() - began;
  while (elapsed() < searchMs || best.length === 0) {
    const parent = best[Math.floor(random() * best.length)];
    const fresh = parent === undefined || elapsed() < searchMs * RANDOM_SHARE;
    const gene = fresh ? randomGene(places, random) : mutated(parent.gene, places, random);
    const body = bodyOf(gene, places, route.maxBodyBytes);
    const once = await stand.cost({ route, body, headers: KEYED });
    tried++;
    if (best.length === KEPT && once <= (best.at(-1)?.costMs ?? 0)) continue;
    const costMs = Math.min(once, await leastCost(stand, route, body, RUNS - 1));
    best.push({ gene, costMs });
    best.sort((a, b) => b.costMs - a.costMs);
    best.length = Math.min(best.length, KEPT);
  }
  let worst: Found | undefined;
  for (const { gene } of best) {
    const costMs = await leastCost(stand, route, bodyOf(gene, places, route.maxBodyBytes), LAST_RUNS);
    if (worst === undefined || costMs > worst.costMs) worst = { gene, costMs };
  }
  if (worst === undefined) throw new Error('nothing was tried');
  return { tried, best: worst };
}

async function leastCost(stand: Stand, route: Endpoint, body: string, runs: number): Promise<number> {
  let costMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs; i++) costMs = Math.min(costMs, await stand.cost({ route, body, headers: KEYED }));
  return costMs;
}

/** So that the request is compared as a repeated one would be. */
const KEYED = { 'idempotency-key': 'a' };

/** The head of a request at its maximum length. */
async function headRows(stand: Stand): Promise<Row[]> {
  const long = (unit: string): string => unit.repeat(Math.floor(30_000 / unit.length));
  const many = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`x-header-${i}`, 'a']));
  const heads: readonly {
    readonly name: string;
    readonly path: string;
    readonly query?: string;
    readonly headers?: Record<string, string>;
  }[] = [
    { name: 'parameters', path: '/v1/iam/users', query: `?${long('a&')}` },
    {
      name: 'distinct parameters',
      path: '/v1/iam/users',
      query: `?${Array.from({ length: 4_000 }, (_, i) => `p${i}=`).join('&')}`,
    },
    { name: 'one parameter of escapes', path: '/v1/iam/users', query: `?q=${long('%C3%A9')}` },
    { name: 'a broken escape', path: '/v1/iam/users', query: `?q=${long('%C3')}%` },
    { name: 'If-None-Match', path: '/v1/iam/users/:id', headers: { 'if-none-match': long('"",') } },
    { name: 'If-None-Match of commas', path: '/v1/iam/users/:id', headers: { 'if-none-match': `"a"${long(' ,')}x` } },
    {
      name: 'If-None-Match of the key set',
      path: '/.well-known/jwks.json',
      headers: { 'if-none-match': long('W/"",') },
    },
    { name: 'Accept', path: '/v1/iam/audit', headers: { accept: long('a/b;q=0.1,') } },
    { name: 'Accept of parameters', path: '/v1/iam/audit', headers: { accept: long('a;') } },
    { name: 'X-Forwarded-For', path: '/v1/iam/users', headers: { 'x-forwarded-for': long('10.0.0.1,') } },
    { name: 'Authorization', path: '/v1/iam/users', headers: { authorization: `Bearer ${long('a')}` } },
    { name: 'Cookie', path: '/v1/auth/refresh', headers: { cookie: long('__Secure-postern_refresh=;') } },
    { name: '1,500 headers', path: '/v1/iam/users', headers: many },
  ];
  const rows: Row[] = [];
  for (const { name, path, ...head } of heads) {
    const route = stand.routes.find((one) => one.path === path);
    if (route === undefined) throw new Error(`no route ${path}`);
    let ms = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 4 * RUNS; i++) ms = Math.min(ms, await stand.cost({ route, ...head }));
    rows.push({ head: name, route: `${route.method} ${path}`, ms: ms.toFixed(1) });
  }
  return rows;
}

/** A small generator of numbers from 0 to 1, so that a search can be repeated. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
