/**
 * The console with 100,000 users and 100,000 keys in real Chromium: from the API's answer to rows that can be used, for
 * every list, search and picker; what each of them loads; and how long the first screen takes. Exit code 1 if a goal is
 * missed.
 *
 * BENCH_CONSOLE chooses cases by a part of their names; BENCH_ROUNDS, BENCH_CONSOLE_USERS, BENCH_CONSOLE_KEYS,
 * BENCH_CONSOLE_TENANTS and BENCH_CONSOLE_RULES make it smaller.
 */

import type { BrowserContext, Page } from 'playwright-core';
import { CASES, type ConsoleCase } from './console-cases.ts';
import { type ConsoleStand, goFirst, KEYS, openConsole, TENANTS, USERS } from './console-stand.ts';
import { type Fetched, type Ready, type Seen, watch, watchAll } from './console-watch.ts';
import { BIG } from './iam-population.ts';
import { median, printTable, type Row, writeResult } from './stack.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5);
const CHOSEN = process.env['BENCH_CONSOLE'] ?? '';
const MOST_RENDER_MS = 300;
/** From the address of a screen to its first rows, files, data and drawing included. */
const MOST_ROWS_MS = 500;
const MOST_FIRST_MS = 1000;
/** The rows of one list in one answer. */
const PAGE_ROWS = 200;
const SLOW_API_MS = 50;
const GO_FIRST_MS = 100;

export async function consoleBenchmark(): Promise<void> {
  await using stand = await openConsole();
  const broken: string[] = [];
  const context = await stand.open();
  await watchAll(context);
  const page = await context.newPage();
  await stand.signIn(page);
  const rows: Row[] = [];
  for (const one of CASES.filter(({ name }) => name.includes(CHOSEN))) {
    try {
      const row = await measure(page, one, broken);
      rows.push(row);
      console.log(Object.values(row).join(' | '));
    } catch (error) {
      broken.push(error instanceof Error ? error.message : `${one.name}: ${error}`);
    }
  }
  if (rows.length > 0)
    printTable(
      `The console with ${TENANTS} tenants, ${USERS} users and ${KEYS} keys: medians of ${ROUNDS} rounds. Goals: ${MOST_RENDER_MS} ms, whole screens ${MOST_ROWS_MS} ms`,
      rows,
    );
  const first = 'first screen'.includes(CHOSEN) ? await firstScreens(stand, context, broken) : [];
  if (first.length > 0)
    printTable(
      `The first screen usable, from the address to the last of its parts: medians of ${ROUNDS}. Goal: ${MOST_FIRST_MS} ms`,
      first,
    );
  writeResult('console', { users: USERS, keys: KEYS, rounds: ROUNDS, rows, first, broken });
  for (const each of broken) console.log(`NOT HELD: ${each}`);
  if (broken.length > 0) process.exitCode = 1;
}

async function measure(page: Page, one: ConsoleCase, broken: string[]): Promise<Row> {
  const seen: Seen[] = [];
  // The first round loads the screen's own files.
  for (let round = 0; round <= ROUNDS; round++) {
    if (one.from !== undefined) {
      await page.goto(one.from);
      await page.waitForLoadState('networkidle');
      await one.before?.(page);
      await page.waitForLoadState('networkidle');
    }
    goFirst();
    const result = await watch(page, one).catch((error: unknown) => {
      throw new Error(`${one.name}: ${error instanceof Error ? error.message : error}`);
    });
    if (round > 0) seen.push(result);
  }
  const renderMs = median(seen.map((each) => each.renderMs));
  const answerMs = median(seen.map((each) => each.answerMs));
  const wholeMs = median(seen.map((each) => each.wholeMs));
  const last = seen.at(-1)?.fetched ?? [];
  if (renderMs > MOST_RENDER_MS) broken.push(`${one.name}: usable ${Math.round(renderMs)} ms after the answer`);
  if (one.kind === 'list' && wholeMs > MOST_ROWS_MS)
    broken.push(`${one.name}: first rows after ${Math.round(wholeMs)} ms`);
  for (const fault of new Set(seen.flatMap(({ fetched }) => pagesTooMany(fetched, one.kind === 'page'))))
    broken.push(`${one.name}: ${fault}`);
  if (answerMs > SLOW_API_MS) console.log(`${one.name}: the API took ${Math.round(answerMs)} ms`);
  return {
    'list, search or picker': one.name,
    'usable ms': Math.round(renderMs),
    'most ms': Math.round(Math.max(...seen.map((each) => each.renderMs))),
    'whole ms': Math.round(wholeMs),
    'API ms': Math.round(answerMs),
    requests: last.length,
    'most rows': Math.max(0, ...last.map(({ rows = 0 }) => rows)),
    kB: (last.reduce((sum, { bytes }) => sum + bytes, 0) / 1000).toFixed(1),
  };
}

/** Returns the requests beyond one page of each list. */
function pagesTooMany(fetched: readonly Fetched[], mayGoOn: boolean): readonly string[] {
  return fetched.flatMap(({ path, query, rows = 0 }) => [
    ...(rows > PAGE_ROWS ? [`${rows} rows of ${path}`] : []),
    ...(query.has('cursor') && !mayGoOn ? [`a second page of ${path}`] : []),
  ]);
}

const FORM: Ready = { rows: 'input[name=password]' };
const OVERVIEW: Ready = { rows: 'main h1', text: 'overview' };

/** Cold: nothing in the browser's cache. Warm: all that was loaded before. */
async function firstScreens(stand: ConsoleStand, signedIn: BrowserContext, broken: string[]): Promise<readonly Row[]> {
  const [form, overview]: [Kept, Kept] = [
    { cold: [], warm: [], requests: 0 },
    { cold: [], warm: [], requests: 0 },
  ];
  let state = await signedIn.storageState();
  const look = async (path: string, ready: Ready, kept: Kept): Promise<void> => {
    const context = await stand.open(path === '/console/sign-in' ? undefined : state);
    await watchAll(context, ready);
    for (const temperature of ['cold', 'warm'] as const) {
      const page = await context.newPage();
      // The process of the page begins with the page.
      const going = setInterval(goFirst, GO_FIRST_MS);
      const { wholeMs, fetched } = await watch(page, { path, ready }).finally(() => clearInterval(going));
      kept[temperature].push(wholeMs);
      kept.requests = fetched.length;
      await page.close();
    }
    // A refresh token works once.
    if (path !== '/console/sign-in') state = await context.storageState();
    await context.close();
  };
  for (let round = 0; round <= ROUNDS; round++) {
    await look('/console/sign-in', FORM, form);
    await look(`/console/?tenant=${BIG}`, OVERVIEW, overview);
  }
  return [
    { name: 'sign in', kept: form },
    { name: 'overview', kept: overview },
  ].flatMap(({ name, kept }) =>
    (['cold', 'warm'] as const).map((temperature) => {
      const times = kept[temperature].slice(1);
      const ms = median(times);
      if (ms > MOST_FIRST_MS) broken.push(`first screen, ${name}, ${temperature}: ${Math.round(ms)} ms`);
      return {
        'first screen': `${name}, ${temperature} cache`,
        'usable ms': Math.round(ms),
        'least ms': Math.round(Math.min(...times)),
        'most ms': Math.round(Math.max(...times)),
        'calls of the API': kept.requests,
      };
    }),
  );
}

interface Kept {
  readonly cold: number[];
  readonly warm: number[];
  requests: number;
}
