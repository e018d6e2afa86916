/**
 * The console with a platform of many users behind it: PostgreSQL, `postern serve`, Envoy before it, and Chromium, each
 * a process of its own.
 */

import { readdirSync } from 'node:fs';
import { setPriority } from 'node:os';
import type pg from 'pg';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launchChromium } from '../scripts/lib/chromium.ts';
import { startUpstream } from '../src/demo/upstream.ts';
import { startEdge } from '../test/support/envoy.ts';
import { BIG, populateIam, SMALL_TENANTS } from './iam-population.ts';
import { openWorld } from './server-under-test.ts';
import { freePort, processTree, scratch } from './stack.ts';

export const USERS = Number(process.env['BENCH_CONSOLE_USERS'] ?? 100_000);
export const KEYS = Number(process.env['BENCH_CONSOLE_KEYS'] ?? 100_000);
export const TENANTS = Number(process.env['BENCH_CONSOLE_TENANTS'] ?? SMALL_TENANTS);
/** Roles, and as many policies, of the big tenant, beside those of every tenant. */
const RULES = Number(process.env['BENCH_CONSOLE_RULES'] ?? 300);
/** Made through the API, each with a row in the audit log. */
const AUDITED = 120;
/** Before other programs, as `nice` counts. */
const PRIORITY = -10;

export interface ConsoleStand extends AsyncDisposable {
  /** `http://127.0.0.1:port` of Envoy. */
  readonly url: string;
  /** A browser window with cookies, storage and a cache of its own; in it the state of another one. */
  open(state?: Awaited<ReturnType<BrowserContext['storageState']>>): Promise<BrowserContext>;
  /** Signs the platform administrator in by the form. */
  signIn(page: Page): Promise<void>;
}

const ADMIN = { email: 'admin@localhost', password: 'a benchmark administrator' };

export async function openConsole(): Promise<ConsoleStand> {
  goFirst();
  await using starting = new AsyncDisposableStack();
  const browser: Browser = starting.adopt(await launchChromium(), (each) => each.close());
  const world = starting.use(
    await openWorld(scratch(), async (client) => {
      await populateIam(client, { users: USERS, keys: KEYS, tenants: TENANTS });
      await addRules(client);
    }),
  );
  const listen = `127.0.0.1:${await freePort()}`;
  const server = await world.start({
    settings: {
      POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]',
      POSTERN_HTTP_ORIGINS: JSON.stringify([`http://${listen}`]),
    },
  });
  starting.defer(() => server.stop());
  const upstream = starting.adopt(await startUpstream('127.0.0.1', 0), (each) => each.close());
  const edge = starting.adopt(
    await startEdge({ grpc: server.grpc, http: server.http, listen, upstream: `${upstream.host}:${upstream.port}` }),
    (each) => each.stop(),
  );
  await makeTraffic(edge.url, await world.administratorToken(server));
  const running = starting.move();
  return {
    url: edge.url,
    open: async (state) =>
      browser.newContext({
        baseURL: edge.url,
        viewport: { width: 1440, height: 900 },
        reducedMotion: 'reduce',
        locale: 'en-GB',
        ...(state === undefined ? {} : { storageState: state }),
      }),
    async signIn(page) {
      await page.goto('/console/sign-in');
      await page.getByRole('textbox', { name: 'E-mail address' }).fill(ADMIN.email);
      await page.locator('input[name=password]').fill(ADMIN.password);
      await page.getByRole('button', { name: 'Enter' }).click();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Half of the policies are attached to the role that every user holds. */
async function addRules(client: pg.Client): Promise<void> {
  await client.query("set session_replication_role = 'replica'");
  await client.query(
    `insert into roles (tenant_id, name, description, permissions)
     select $1, 'team-' || lpad(i::text, 3, '0'), 'Team ' || i, '{chat:read,rag:query}' from generate_series(1, $2::int) i`,
    [BIG, RULES],
  );
  await client.query(
    `insert into policies (tenant_id, name, description, effect, actions, resources, applies_to)
     select $1, 'rule-' || lpad(i::text, 3, '0'), 'Rule ' || i, 'deny', '{rag:*}', array['collections/secret-' || i], 'roles'
     from generate_series(1, $2::int) i`,
    [BIG, RULES],
  );
  await client.query(
    `insert into policy_roles (policy_id, role_name)
     select id, case when name < 'rule-150' then 'developer' else 'team-001' end from policies where tenant_id = $1 and name like 'rule-%'`,
    [BIG],
  );
  await client.query("set session_replication_role = 'origin'");
  await client.query('analyze');
}

/**
 * Rows for the audit log, the overview and the usage: keys made through the API, each used through Envoy, and every
 * fourth request denied.
 */
async function makeTraffic(url: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'x-tenant-id': BIG, 'content-type': 'application/json' };
  for (let i = 0; i < AUDITED; i++) {
    const body = JSON.stringify({
      name: `service ${i}`,
      description: 'made by the benchmark',
      scopes: ['chat:*'],
      expires_in_days: 6,
    });
    const answer = await fetch(`${url}/v1/iam/api-keys`, { method: 'POST', headers, body });
    if (answer.status !== 201) throw new Error(`a key could not be made: ${answer.status} ${await answer.text()}`);
    const { key } = (await answer.json()) as { key: string };
    const credential = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const chat = JSON.stringify({ model: `model-${i % 60}`, messages: [{ role: 'user', content: 'Hello' }] });
    const asked = i % 4 === 0 ? fetch(`${url}/v1/models`, { headers: credential }) : undefined;
    await (await asked)?.arrayBuffer();
    await (
      await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers: credential, body: chat })
    ).arrayBuffer();
  }
}

/**
 * Gives the processes of the stand priority over others on this machine, so that its times are those of a machine of
 * its own. Chromium resets the priority of its threads, so call it before each measurement. It needs root.
 */
export function goFirst(): void {
  for (const pid of processTree(process.pid)) for (const thread of threadsOf(pid)) prefer(thread);
}

function threadsOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    // It has ended.
    return [];
  }
}

function prefer(thread: number): void {
  try {
    setPriority(thread, PRIORITY);
  } catch {
    // It has ended, or this is not root: then the times are those beside everything else.
  }
}
