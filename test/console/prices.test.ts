import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { call, done, makeUser } from '../server/support/client.ts';
import { faultsInEveryLook, visit } from './support/browser.ts';
import { shoot } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

/** No price of the release matches it. */
const MODEL = 'console-prices-llama';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
});

const prices = async (): Promise<readonly Record<string, unknown>[]> => {
  const { body } = await done(stand.server.http, 'GET', '/v1/iam/prices', { token: stand.token });
  return Object(body)['prices'];
};
const priceOf = async (models: string) => (await prices()).find((price) => price['models'] === models);
const field = (place: Page | Locator, name: string) => place.getByRole('textbox', { name, exact: true });

describe('a price', () => {
  it('is added, changed without losing a price of another administrator, and removed', async () => {
    const { page, problems } = await stand.asAdmin({ path: `/console/prices?add=true&model=${MODEL}` });
    const drawer = page.getByRole('dialog');
    expect(await field(drawer, 'Model').inputValue()).toBe(MODEL);
    await field(drawer, 'Prompt').fill('0.1234567891');
    await drawer.getByText('at most 9 digits after the point').first().waitFor();
    await field(drawer, 'Prompt').fill('0.20');
    await field(drawer, 'Answer').fill('0.60');
    await drawer.getByRole('button', { name: 'Save price' }).click();
    await drawer.waitFor({ state: 'hidden' });
    await visit(page, `/console/prices?q=${MODEL}`);
    await page.getByRole('row', { name: MODEL }).click();
    await drawer.getByRole('textbox', { name: 'Prompt from cache' }).fill('0.05');

    // Another administrator adds a price while the drawer is open.
    const list = (await prices()).map((price) => ({ ...price }));
    const other = { models: `${MODEL}-2`, input: '1.00', output: '2.00', per: 1_000_000 };
    await done(stand.server.http, 'PUT', '/v1/iam/prices', { token: stand.token, body: { prices: [...list, other] } });
    await drawer.getByRole('button', { name: 'Save price' }).click();
    await drawer.waitFor({ state: 'hidden' });
    expect(await priceOf(MODEL)).toMatchObject({ input: '0.20', output: '0.60', cached_input: '0.05' });
    expect(await priceOf(`${MODEL}-2`)).toMatchObject({ input: '1.00' });

    await page.getByRole('row', { name: new RegExp(`^${MODEL}-2`) }).click();
    await drawer.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click();
    await expect.poll(() => priceOf(`${MODEL}-2`)).toBeUndefined();
    await drawer.waitFor({ state: 'hidden' });
    expect(problems).toEqual([]);
  });

  it('of the release applies after an administrator has compared and accepted it', async () => {
    const { body } = await done(stand.server.http, 'GET', '/v1/iam/prices/proposal?q=gpt-4o', { token: stand.token });
    const { price } = Object(body)['data'][0];
    const { page, problems } = await stand.asAdmin({ path: `/console/import-prices?q=${price.models}` });
    await page.getByRole('row', { name: price.models }).first().waitFor();
    expect(await priceOf(price.models)).toBeUndefined();
    await page.getByRole('row', { name: price.models }).first().click();
    await shoot(page, 'import prices');
    await page.getByRole('button', { name: 'Accept 1 price' }).click();
    await page.getByText('1 price is in force.').waitFor();
    expect(await priceOf(price.models)).toMatchObject({ input: price.input, output: price.output });
    expect(await priceOf(MODEL)).toMatchObject({ input: '0.20' });
    expect(problems).toEqual([]);
  });

  it('is only read by a user that is no platform administrator', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['tenant-admin'] });
    const { page, problems } = await stand.signIn({ person, path: `/console/prices?q=${MODEL}` });
    await page.getByText('Platform administrators set the prices.').waitFor();
    await page.getByRole('row', { name: MODEL, exact: true }).click();
    expect(await page.getByRole('button', { name: 'Add a price' }).count()).toBe(0);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await visit(page, '/console/import-prices');
    await page.getByRole('status').filter({ hasText: 'admin:tenants' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the screens of prices', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    expect((await call(stand.server.http, 'GET', '/v1/iam/prices', { token: stand.token })).status).toBe(200);
    const { page, problems } = await stand.asAdmin({ path: '/console/prices' });
    for (const path of ['prices', `prices?edit=${MODEL}`, 'import-prices']) {
      await visit(page, `/console/${path}`);
      expect(await faultsInEveryLook(page, `look ${path}`)).toEqual([]);
    }
    expect(problems).toEqual([]);
  });
});
