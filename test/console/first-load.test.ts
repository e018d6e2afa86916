/**
 * The bytes that a browser loads before the console is usable: within the limit, and as `npm run console:size` reports.
 */

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect } from 'vitest';
import { type ConsoleSize, type Load, MAX_FIRST_LOAD_BYTES } from '../../scripts/lib/console-size.ts';
import { send } from '../support/http.ts';
import { type Tab, untilSettled } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/console-size.ts', import.meta.url));
const ONE_YEAR = 'public, max-age=31536000, immutable';

let size: ConsoleSize;
let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  size = JSON.parse((await promisify(execFile)(process.execPath, [SCRIPT, '--json'])).stdout);
});

const loadOf = (name: string): Load => {
  const load = size.first.find((each) => each.name === name);
  if (load === undefined) throw new Error(`no first load ${name}`);
  return load;
};

/** The files of the console that a tab has fetched and, from now on, fetches. */
async function fetched(tab: Tab, path: string): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  tab.page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (pathname.startsWith('/console/assets/')) names.add(pathname.slice('/console/'.length));
  });
  await tab.page.goto(path);
  await tab.page.getByRole('heading', { level: 1 }).waitFor();
  await untilSettled(tab.page);
  return new Set([...names].filter((name) => !name.endsWith('.woff2')));
}

const scriptsAndStyles = ({ files }: Load): ReadonlySet<string> =>
  new Set(files.filter((name) => name.startsWith('assets/')));

describe('the first load', () => {
  it.each(['signed out', 'overview'])('(%s) is at most 250 kB with gzip', (name) => {
    expect(loadOf(name).gzip).toBeLessThanOrEqual(MAX_FIRST_LOAD_BYTES);
    expect(MAX_FIRST_LOAD_BYTES).toBe(250_000);
  });

  it('fetches the scripts and styles that were measured, and no others', async () => {
    expect(await fetched(await stand.open(), '/console/sign-in')).toEqual(scriptsAndStyles(loadOf('signed out')));
    const first = await stand.signIn();
    // Another tab of the same browser, so that what the form of the sign-in fetched is not in it.
    const page = await first.context.newPage();
    expect(await fetched({ ...first, page }, '/console/')).toEqual(scriptsAndStyles(loadOf('overview')));
    expect(first.problems).toEqual([]);
  });
});

describe('a file with the digest of its content in its name', () => {
  it('is kept by browsers for a year, and is compressed with what the browser takes', async () => {
    const answerTo = (accepted: string, name: string) =>
      send(stand.edge.url, { path: `/console/${name}`, headers: { 'accept-encoding': accepted } });
    for (const name of scriptsAndStyles(loadOf('overview'))) {
      for (const [accepted, encoding] of [
        ['gzip, deflate, br, zstd', 'br'],
        ['gzip', 'gzip'],
        ['br;q=0, gzip;q=0', undefined],
      ] as const) {
        const { status, headers } = await answerTo(accepted, name);
        expect([name, status, headers['content-encoding'], headers['cache-control'], headers['vary']]).toEqual([
          name,
          200,
          encoding,
          ONE_YEAR,
          'accept-encoding',
        ]);
      }
    }
    for (const { files } of size.fonts) {
      const { headers } = await answerTo('gzip, br', files[0] ?? '');
      expect([headers['content-type'], headers['content-encoding'], headers['cache-control']]).toEqual([
        'font/woff2',
        undefined,
        ONE_YEAR,
      ]);
    }
  });

  it('is never answered with the page when it is gone', async () => {
    const { status, headers } = await send(stand.edge.url, { path: '/console/assets/index-00000000.js' });
    expect([status, headers['content-type']]).toEqual([404, 'application/problem+json; charset=utf-8']);
  });

  it('is not asked for again: the page alone is', async () => {
    const tab = await stand.open();
    await tab.page.getByRole('button', { name: 'Enter' }).waitFor();
    const page = tab.page.waitForResponse((response) => response.request().isNavigationRequest());
    await tab.page.goto('/console/sign-in');
    expect((await page).headers()['cache-control']).toBe('no-store');
    await tab.page.getByRole('button', { name: 'Enter' }).waitFor();
    await untilSettled(tab.page);
    const again = await tab.page.evaluate<string>(
      "performance.getEntriesByType('resource').filter(({ name, transferSize }) => name.includes('/assets/') && transferSize > 0).map(({ name }) => name).join()",
    );
    expect(again).toBe('');
  });
});
