/** All that the console needs, for real: `postern serve`, the demo's upstream, Envoy before both, and Chromium. */

import type { Browser, BrowserContext, Page } from 'playwright-core';
import { test } from 'vitest';
import { startUpstream } from '../../../src/demo/upstream.ts';
import type { Database } from '../../../src/store/database.ts';
import { ADMIN, login, type Person, SECRET_KEY } from '../../server/support/client.ts';
import { openStand, type Server } from '../../server/support/postern.ts';
import { freshDatabase } from '../../support/database.ts';
import { type Edge, startEdge } from '../../support/envoy.ts';
import { freeAddress } from '../../support/ports.ts';
import {
  type Look,
  leaveScreens,
  openBrowser,
  openContext,
  openTouchTab,
  PagePool,
  type Tab,
  visitors,
} from './browser.ts';

export interface ConsoleStand {
  /** That of the server. */
  readonly db: Database;
  readonly server: Server;
  readonly edge: Edge;
  /** An access token of the platform administrator. */
  readonly token: string;
  /** A tab at a page of the console, by default the first, without a session. */
  open(look?: Look, path?: string): Promise<Tab>;
  /** A tab of its own browser session, in which a person has signed in by the form; default: the administrator. */
  signIn(options?: { readonly person?: Person; readonly look?: Look; readonly path?: string }): Promise<Tab>;
  /**
   * A tab of the browser session in which the administrator has signed in already. Tests that end that session, or look
   * at what the browser keeps of it, sign in themselves.
   */
  asAdmin(options?: { readonly look?: Look; readonly path?: string }): Promise<Tab>;
}

/** Starts a console whose server has these settings besides the usual ones. */
export type StartConsole = (env?: NodeJS.ProcessEnv) => Promise<ConsoleStand>;

/**
 * Tests of the console:
 *
 * - `browser`: one Chromium for all files of a worker
 * - `startConsole`: starts a console for one file, which ends with the file
 * - `stand`: a console that the files of a worker share. It starts with the first file that uses it and keeps what
 *   earlier files wrote. A test that depends on the number or the order of rows makes a tenant of its own, or starts a
 *   console of its own.
 */
export const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures this one uses.
  .extend('browser', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const browser = await openBrowser();
    onCleanup(() => browser.close());
    return browser;
  })
  .extend('stand', { scope: 'worker' }, async ({ browser }, { onCleanup }) => {
    const stack = new AsyncDisposableStack();
    onCleanup(() => stack.disposeAsync());
    return startIn(stack, browser, {});
  })
  .extend('startConsole', { scope: 'file' }, async ({ browser }, { onCleanup }): Promise<StartConsole> => {
    const stack = new AsyncDisposableStack();
    onCleanup(() => stack.disposeAsync());
    return (env = {}) => startIn(stack, browser, env);
  });

async function startIn(stack: AsyncDisposableStack, browser: Browser, env: NodeJS.ProcessEnv): Promise<ConsoleStand> {
  const database = await freshDatabase();
  stack.defer(() => database.close());
  // A test may be the first to use a console that others share.
  const stand = await openStand({ isShared: true });
  stack.defer(() => stand.close());
  const listen = await freeAddress();
  const server = await stand.serve({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_BOOTSTRAP_EMAIL: ADMIN.email,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]',
    POSTERN_ROUTES: JSON.stringify([{ method: 'POST', path: '/v1/reports', permission: 'reports:write' }]),
    // Envoy cuts the port off Host.
    POSTERN_HTTP_ORIGINS: JSON.stringify([`http://${listen}`]),
    ...env,
  });
  const upstream = await startUpstream('127.0.0.1', 0);
  stack.defer(() => upstream.close());
  const edge = await startEdge({
    grpc: server.grpc,
    http: server.http,
    listen,
    upstream: `${upstream.host}:${upstream.port}`,
  });
  stack.defer(() => edge.stop());
  const token = await login(server.http);
  const makeContext = async (): Promise<BrowserContext> => {
    const context = await openContext(browser, edge.url);
    // At the end of a worker, the browser may have been closed first.
    stack.defer(() => context.close().catch(() => undefined));
    return context;
  };
  const strangers = visitors(makeContext);
  const open = async (look?: Look, path = '/console'): Promise<Tab> => {
    const tab = await (look?.hasTouch ? openTouchTab(browser, edge.url, look) : strangers.take(edge.url, look));
    await tab.page.goto(path);
    return tab;
  };
  let session: Promise<PagePool> | undefined;
  const adminSession = async (): Promise<PagePool> => {
    const context = await makeContext();
    const page = await context.newPage();
    await page.goto('/console');
    await enter(page, ADMIN);
    await page.close();
    return new PagePool(() => context.newPage(), leaveScreens);
  };
  return {
    db: database.db,
    server,
    edge,
    token,
    open,
    async signIn({ person = ADMIN, look, path } = {}) {
      // The sign-in page leads to the requested page, so no page is loaded twice.
      const tab = await open(look, path);
      await enter(tab.page, person);
      return tab;
    },
    async asAdmin({ look, path = '/console' } = {}) {
      session ??= adminSession();
      const tab = await (await session).take(edge.url, look);
      if (tab.page.url() === 'about:blank') await tab.page.goto(path);
      else await tab.page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`);
      await untilOpen(tab.page);
      return tab;
    },
  };
}

/** Signs in by the form and waits until the console is open. */
export async function enter(page: Page, { email, password }: Person): Promise<void> {
  await page.getByRole('textbox', { name: 'E-mail address' }).fill(email);
  await page.getByLabel('Password', { exact: true }).and(page.locator('input')).fill(password);
  await page.getByRole('button', { name: 'Enter' }).click();
  await untilOpen(page);
}

async function untilOpen(page: Page): Promise<void> {
  // The rail is there before the server has said whose session it is.
  await page
    .getByRole('button', { name: 'Account and sessions' })
    .or(page.getByRole('button', { name: 'Menu' }))
    .first()
    .waitFor();
}
