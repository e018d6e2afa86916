/** All that the console needs, for real: `postern serve`, the demo's upstream, Envoy before both, and Chromium. */

import type { Browser } from 'playwright-core';
import { startUpstream } from '../../../src/demo/upstream.ts';
import { ADMIN, login, type Person, SECRET_KEY } from '../../server/support/client.ts';
import { openStand, type Server } from '../../server/support/postern.ts';
import { type Edge, startEdge } from '../../support/envoy.ts';
import { freeAddress } from '../../support/ports.ts';
import { type Look, openBrowser, openTab, type Tab } from './browser.ts';

export interface ConsoleStand {
  readonly server: Server;
  readonly edge: Edge;
  /** An access token of the platform administrator. */
  readonly token: string;
  /** A tab at a page of the console, the first unless told, with nobody signed in. */
  open(look?: Look, path?: string): Promise<Tab>;
  /** A tab in which somebody has signed in by the form; the administrator unless told. */
  signIn(options?: { readonly person?: Person; readonly look?: Look; readonly path?: string }): Promise<Tab>;
  close(): Promise<void>;
}

/** @param env more settings of the server */
export async function startConsole(env: NodeJS.ProcessEnv = {}): Promise<ConsoleStand> {
  await using starting = new AsyncDisposableStack();
  const stand = await openStand();
  starting.defer(() => stand.close());
  const listen = await freeAddress();
  const server = await stand.serve({
    POSTERN_BOOTSTRAP_EMAIL: ADMIN.email,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_HTTP_TRUSTED_PROXIES: '["127.0.0.1"]',
    // Envoy cuts the port off Host.
    POSTERN_HTTP_ORIGINS: JSON.stringify([`http://${listen}`]),
    ...env,
  });
  const upstream = await startUpstream('127.0.0.1', 0);
  starting.defer(() => upstream.close());
  const edge = await startEdge({ grpc: server.grpc, http: server.http, listen, upstream: `${upstream.host}:${upstream.port}` });
  starting.defer(() => edge.stop());
  const browser: Browser = await openBrowser();
  starting.defer(() => browser.close());
  const token = await login(server.http);
  const open = async (look?: Look, path = '/console'): Promise<Tab> => {
    const tab = await openTab(browser, edge.url, look);
    await tab.page.goto(path);
    return tab;
  };
  const running = starting.move();
  return {
    server,
    edge,
    token,
    open,
    async signIn({ person = ADMIN, look, path } = {}) {
      // The door leads to the page that was asked for, so no page is loaded twice.
      const tab = await open(look, path);
      await enter(tab, person);
      return tab;
    },
    close: () => running.disposeAsync(),
  };
}

/** Signs in by the form and waits until the console is open. */
export async function enter({ page }: Tab, { email, password }: Person): Promise<void> {
  await page.getByRole('textbox', { name: 'E-mail address' }).fill(email);
  await page.getByLabel('Password', { exact: true }).and(page.locator('input')).fill(password);
  await page.getByRole('button', { name: 'Enter' }).click();
  await page
    .getByRole('navigation', { name: 'Console' })
    .or(page.getByRole('button', { name: 'Menu' }))
    .first()
    .waitFor();
}
