/** Limits of one tenant over three servers on one database, while servers are killed and the database goes away. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { LedgerReport } from '../../src/demo/ledger.ts';
import { startUpstream, type Upstream } from '../../src/demo/upstream.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { send } from '../support/http.ts';
import { ADMIN, decider, done, login, makeKey, SECRET_KEY } from './support/client.ts';
import { type DatabaseLink, linkTo } from './support/database-link.ts';
import { eventually } from './support/eventually.ts';
import { type GateServer, openStand, type Server, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SERVERS = 3;
const WINDOW_MS = 1000;

let stand: Stand;
let database: FreshDatabase;
let link: DatabaseLink;
let upstream: Upstream;
/** The first has the API. */
let servers: [Server, ...GateServer[]];
let edges: Edge[];
let admin: string;

beforeAll(async () => {
  [stand, database, upstream] = await Promise.all([openStand(), freshDatabase(), startUpstream('127.0.0.1', 0)]);
  link = await linkTo(database.url, join(stand.folder, 'link'));
  const env = {
    POSTERN_DATABASE_URL: link.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_LIMITS_WINDOW: `${WINDOW_MS / 1000}s`,
  };
  const [first, ...gates] = await Promise.all([
    stand.serve(env),
    ...Array.from({ length: SERVERS - 1 }, () => stand.serveGate(env)),
  ]);
  servers = [first, ...gates];
  const { http } = first;
  edges = await Promise.all(gates.map(({ grpc }) => startEdge({ grpc, http, upstream: `127.0.0.1:${upstream.port}` })));
  admin = await login(http);
});

afterAll(async () => {
  await Promise.all((edges ?? []).map((edge) => edge.stop()));
  await stand?.close();
  await link?.close();
  await upstream?.close();
  await database?.close();
});

async function tenant(id: string, limits: object): Promise<string> {
  const [{ http }] = servers;
  await done(http, 'POST', '/v1/iam/tenants', { token: admin, body: { id, name: id, ...limits } });
  return (await makeKey(http, admin, { tenant: id, scopes: ['chat:*'] })).key;
}

it('no more tokens are spent in a month than the quota and the prompts of what is not booked yet, by many streams through several Envoys', async () => {
  const QUOTA = 10_000;
  const STREAMS = 24;
  const PROMPT_TOKENS = 25;
  const key = await tenant('spender', { quotas: { monthly_tokens: QUOTA } });
  const body = JSON.stringify({
    model: 'm',
    messages: [{ role: 'user', content: 'Hi. '.repeat(PROMPT_TOKENS) }],
    // Less than the upstream would say: each spends its whole reservation, and its prompt beyond.
    max_tokens: 20,
    n: 4,
    stream: true,
    stream_options: { include_usage: true },
  });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const spend = async (edge: Edge | undefined): Promise<number> => {
    const { status } = await send(edge?.url ?? '', { method: 'POST', path: '/v1/chat/completions', headers, body });
    return status;
  };
  let answered = 0;
  const booked = (): Promise<Total> =>
    eventually('every request is booked', async () => {
      const reply = await done(servers[0].http, 'GET', '/v1/iam/usage', { token: admin, tenant: 'spender' });
      const total: Total = JSON.parse(JSON.stringify(reply.body['total']));
      return total.requests === answered && total;
    });
  for (let refused = 0; refused < STREAMS; await booked()) {
    const statuses = await Promise.all(Array.from({ length: STREAMS }, (_, i) => spend(edges[i % edges.length])));
    expect([200, 429]).toEqual(expect.arrayContaining(statuses));
    refused = statuses.filter((status) => status === 429).length;
    answered += STREAMS - refused;
  }

  const report: LedgerReport = JSON.parse((await send(`http://127.0.0.1:${upstream.port}`, { path: '/ledger' })).body);
  const ledger = report.data.filter((entry) => entry.tenant === 'spender');
  const spent = await booked();
  expect(spent).toMatchObject({
    total_tokens: ledger.reduce((sum, entry) => sum + entry.total_tokens, 0),
    estimated_tokens: 0,
  });
  expect(spent.total_tokens).toBeLessThanOrEqual(QUOTA + STREAMS * PROMPT_TOKENS);
  expect(answered).toBeGreaterThan(STREAMS);
});

interface Total {
  readonly requests: number;
  readonly total_tokens: number;
  readonly estimated_tokens: number;
}

it('a rate is not passed in any window, also when a server is killed, nor by more than the shares when the database goes and comes', async () => {
  const LIMIT = 150;
  const CALLERS = 3;
  const PACE_MS = 5;
  const key = await tenant('hurried', { settings: { rate_limit_rpm: LIMIT } });
  const nowMs = (): number => performance.timeOrigin + performance.now();
  /** Admitted in each window for certain: no border was between question and answer. */
  const admitted = new Map<number, number>();
  let over = false;
  const call = async ({ grpc }: GateServer): Promise<void> => {
    const gate = decider(grpc);
    try {
      while (!over) {
        const window = Math.floor(nowMs() / WINDOW_MS);
        const verdict = await gate.decide(key);
        const allowed = verdict === 'allow' && Math.floor(nowMs() / WINDOW_MS) === window;
        if (allowed) admitted.set(window, (admitted.get(window) ?? 0) + 1);
        else expect(['allow', 'rate_limit_exceeded']).toContain(verdict);
        await sleep(PACE_MS);
      }
    } finally {
      gate.close();
    }
  };
  const windowNow = (): number => Math.floor(nowMs() / WINDOW_MS);
  /** Part of the window has passed. */
  const middleOf = (window: number): Promise<void> => sleep(Math.max(0, (window + 0.3) * WINDOW_MS - nowMs()));
  const [killed, ...others] = servers;
  const callers = Promise.all(others.flatMap((server) => Array.from({ length: CALLERS }, () => call(server))));
  // It is looked at when all is over.
  callers.catch(() => undefined);
  const lost = Promise.allSettled(Array.from({ length: CALLERS }, () => call(killed)));

  await middleOf(windowNow() + 3);
  await killed.stop('SIGKILL');
  await middleOf(windowNow() + 2);
  link.cut();
  const went = windowNow();
  await middleOf(went + 3);
  link.restore();
  const came = windowNow();
  await eventually('a window has passed with the database back', async () => windowNow() > came + 2);
  over = true;
  await Promise.all([callers, lost]);

  const share = Math.floor(LIMIT / SERVERS);
  for (const [window, count] of admitted) {
    // The processes reconnect within about a second.
    const disturbed = window === went || (window >= came && window <= came + 1);
    expect(count, `window ${window - went} after the cut`).toBeLessThanOrEqual(
      LIMIT + (disturbed ? (SERVERS - 1) * share : 0),
    );
  }
  expect(Math.max(...admitted.values())).toBeGreaterThan(share);
  for (let window = went + 1; window < came; window++) expect(admitted.get(window)).toBeGreaterThan(0);
});
