/**
 * A month's quota used up by many streams at once, through real Envoys: what is spent past it, and what the upstream's
 * ledger says.
 */

import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findEnvoy } from '../src/cli/envoy.ts';
import { placeAddresses } from '../src/cli/envoy-config.ts';
import { startEnvoy } from '../src/cli/envoy-process.ts';
import { startUpstream } from '../src/demo/upstream.ts';
import { keyText, populate } from './population.ts';
import { openWorld } from './server-under-test.ts';
import { printTable, type Row, scratch } from './stack.ts';

const QUOTA = Number(process.env['BENCH_LIMITS_QUOTA'] ?? 1_000_000);
const STREAMS = 200;
const SERVERS = 2;
/** Less than the stand-in would say, so that every request spends its whole reservation, and its prompt beyond. */
const MAX_TOKENS = 64;
const CHOICES = 8;
/** The stand-in reckons with four characters to a token. */
const PROMPT_TOKENS = 100;
const PROMPT = 'One day. '.repeat(50).slice(0, 4 * PROMPT_TOKENS);
const CONFIG = join(import.meta.dirname, '../envoy/demo.yaml');
/** A caller that was refused asks again so soon: what others reserved and did not spend comes back. */
const PAUSE_MS = 200;
/** An end is booked within it. */
const BOOKING_MS = 2000;
/** The rejections in a row after which it stops. */
const PATIENCE = 10;

interface Tally {
  allowed: number;
  refused: number;
  other: number;
  /** The time at which the last allowed stream was requested. */
  lastAllowedMs: number;
}

export async function quotaUnderStreams(): Promise<{
  readonly rows: readonly Row[];
  readonly broken: readonly string[];
}> {
  const search = await findEnvoy(process.env, console.log);
  if (search.kind === 'missing') throw new Error(search.message);
  await using stack = new AsyncDisposableStack();
  const world = stack.use(
    await openWorld(join(scratch(), 'world'), async (client) => {
      await populate(client, { tenants: 1, keys: 1, usable: 1 });
      await client.query(`update tenants set quotas = quotas || jsonb_build_object('monthly_tokens', $1::bigint)`, [
        QUOTA,
      ]);
    }),
  );
  const upstream = await startUpstream('127.0.0.1', 0);
  stack.defer(() => upstream.close());
  const text = await readFile(CONFIG, 'utf8');
  const edges: string[] = [];
  for (let i = 0; i < SERVERS; i++) {
    const server = await world.start();
    stack.defer(() => server.stop());
    const places = {
      edge: '127.0.0.1:0',
      'postern-grpc': server.grpc,
      'postern-http': server.http,
      upstream: `127.0.0.1:${upstream.port}`,
    };
    const config = placeAddresses(text, { admin: '127.0.0.1:0', places });
    const envoy = await startEnvoy({ binary: search.path, config });
    stack.defer(() => envoy.stop());
    edges.push(`http://${envoy.listeners.get('edge')}`);
  }
  const client = new pg.Client({ connectionString: world.url });
  await client.connect();
  stack.defer(() => client.end());
  const tally: Tally = { allowed: 0, refused: 0, other: 0, lastAllowedMs: 0 };
  const books: { readonly atMs: number; readonly requests: number }[] = [];
  const watching = new AbortController();
  const watched = watch(client, books, watching.signal);
  const agent = new Agent({ keepAlive: true, maxSockets: STREAMS });
  const begun = performance.now();
  await Promise.all(Array.from({ length: STREAMS }, (_, i) => spend(edges[i % SERVERS] ?? '', agent, tally)));
  const seconds = (performance.now() - begun) / 1000;
  agent.destroy();
  watching.abort();
  await watched;

  const booked = await untilBooked(client, tally.allowed);
  const reply = await fetch(`http://127.0.0.1:${upstream.port}/ledger`);
  const { data } = (await reply.json()) as { data: readonly { total_tokens: number }[] };
  const ledger = data.reduce((sum, { total_tokens }) => sum + total_tokens, 0);

  const overshoot = Math.max(0, booked.spent - QUOTA);
  // Completions stay within their reservations. Prompts of requests that were not booked at the last allow may exceed
  // them.
  const known = books.findLast(({ atMs }) => atMs <= tally.lastAllowedMs - BOOKING_MS)?.requests ?? 0;
  const unbooked = tally.allowed - known;
  const bound = unbooked * PROMPT_TOKENS;
  const row = {
    'a month, through Envoy': `${STREAMS} streams`,
    quota: QUOTA,
    requests: tally.allowed,
    'tokens booked': booked.spent,
    'in the ledger': ledger,
    overshoot,
    'not booked then': unbooked,
    'at most': bound,
    'left unused': Math.max(0, QUOTA - booked.spent),
    refused: tally.refused,
    other: tally.other,
    seconds: seconds.toFixed(1),
  };
  printTable(
    `A monthly quota of ${QUOTA} tokens, ${SERVERS} servers, ${MAX_TOKENS * CHOICES} reserved for the answers to each request`,
    [row],
  );
  const broken: string[] = [];
  if (overshoot > bound) broken.push(`the quota was passed by ${overshoot} tokens`);
  if (booked.spent !== ledger) broken.push(`${booked.spent} tokens booked, ${ledger} in the ledger`);
  if (tally.other > 0) broken.push(`${tally.other} requests were answered neither 200 nor 429`);
  return { rows: [row], broken };
}

/** One stream after the other until the quota refuses for good. */
async function spend(url: string, agent: Agent, tally: Tally): Promise<void> {
  for (let refusals = 0; refusals < PATIENCE; ) {
    const askedMs = performance.now();
    const status = await stream(url, agent).catch(() => 0);
    if (status === 200) {
      tally.allowed += 1;
      tally.lastAllowedMs = Math.max(tally.lastAllowedMs, askedMs);
      refusals = 0;
      continue;
    }
    if (status === 429) tally.refused += 1;
    else tally.other += 1;
    refusals += 1;
    await sleep(PAUSE_MS);
  }
}

const BODY = JSON.stringify({
  model: 'llama-3',
  messages: [{ role: 'user', content: PROMPT }],
  max_tokens: MAX_TOKENS,
  n: CHOICES,
  stream: true,
  stream_options: { include_usage: true },
});

function stream(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${keyText(0)}`, 'content-type': 'application/json' };
    const outgoing = request(`${url}/v1/chat/completions`, { method: 'POST', agent, headers }, (incoming) => {
      incoming.on('error', reject);
      incoming.on('end', () => resolve(incoming.statusCode ?? 0));
      incoming.resume();
    });
    outgoing.on('error', reject);
    outgoing.end(BODY);
  });
}

/** How many requests were booked, again and again. */
async function watch(
  client: pg.Client,
  books: { atMs: number; requests: number }[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const { rows } = await client.query<{ requests: string }>(
      'select coalesce(sum(requests), 0) as requests from usage_daily',
    );
    books.push({ atMs: performance.now(), requests: Number(rows[0]?.requests) });
    await sleep(100);
  }
}

/** Returns the booked usage after every allowed request is booked. */
async function untilBooked(client: pg.Client, requests: number): Promise<{ readonly spent: number }> {
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(250)) {
    const { rows } = await client.query<{ requests: string; spent: string }>(
      `select coalesce(sum(requests), 0) as requests, (select coalesce(sum(spent), 0) from token_budgets) as spent from usage_daily`,
    );
    if (Number(rows[0]?.requests) >= requests) return { spent: Number(rows[0]?.spent) };
  }
  throw new Error(`not all of ${requests} requests were booked within a minute`);
}
