/** A page that stays open while a new version is installed: the server has no file of the page's own version. */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { send } from '../support/http.ts';
import { it } from './support/stand.ts';

const OUTDATED = 'A new version is installed, or the connection was lost. Reload the page to go on.';

/** Answers requests for a file of the console as the server answers for one that it does not have. */
async function lose(page: Page, name: string): Promise<() => Promise<void>> {
  const files = `**/console/assets/${name}-*.js`;
  await page.route(files, (route) =>
    route.fulfill({ status: 404, contentType: 'application/problem+json', body: '{}' }),
  );
  return () => page.unroute(files);
}

describe('a page of a version that is no longer installed', () => {
  it('keeps its screen if the palette is missing, reloads once by itself for a missing screen, and offers the reload', async ({
    stand,
  }) => {
    const { page } = await stand.asAdmin({ path: '/console/account' });
    // A busy page may overtake a route with a request that a key causes, so both routes are there before the load.
    const findPalette = await lose(page, 'palette');
    const findAudit = await lose(page, 'audit');
    await page.goto('/console/account');
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor();
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText(OUTDATED).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('heading', { level: 1, name: 'Account' }).waitFor();
    await findPalette();
    let loads = 0;
    page.on('request', (request) => {
      if (request.isNavigationRequest()) loads += 1;
    });
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByText(OUTDATED).waitFor();
    expect(loads).toBe(1);
    await findAudit();
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
    expect(loads).toBe(2);
  });
});

describe('a console that the tests of a worker share', () => {
  it('still answers if the test before was the first to use it', async ({ stand }) => {
    expect((await send(stand.edge.url, { path: '/console/' })).status).toBe(200);
  });
});
