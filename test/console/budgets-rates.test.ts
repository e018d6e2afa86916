import type { Locator } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { faultsInEveryLook, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'console-rates';

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await done(stand.server.http, 'POST', '/v1/iam/tenants', { token: stand.token, body: { id: TENANT, name: 'Rates' } });
});

const manage = async (method: string, path: string, body?: object) =>
  (await done(stand.server.http, method, path, { token: stand.token, tenant: TENANT, body })).body;

/** Adds a limit with one pattern and one number, and saves the form of the drawer. */
async function addLimit(drawer: Locator, number: string, value: string): Promise<void> {
  const limits = drawer.getByRole('group', { name: 'Limits by model' });
  await limits.getByRole('button', { name: 'Add a limit' }).click();
  const limit = limits.getByRole('group', { name: 'Limit 1' });
  await limit.getByRole('textbox', { name: 'Models' }).fill('gpt-*');
  await limit.getByRole('textbox', { name: 'Models' }).press('Enter');
  await drawer.getByText('A limit by model needs a model and a number.').first().waitFor();
  await limit.getByRole('textbox', { name: number }).fill(value);
  await drawer.getByRole('button', { name: 'Save', exact: true }).click();
}

describe('limits by model', () => {
  it('are edited at a key, a user and a tenant, and fit the screen in both themes, on desktops and phones', async () => {
    const newKey = { description: 'The shop', scopes: ['chat:*'], expires_in_days: 3 };
    const key = String((await manage('POST', '/v1/iam/api-keys', newKey))['id']);
    const person = { email: 'rates@console-rates.example', password: 'a person in a system test', name: 'Ada Limited' };
    const user = String((await manage('POST', '/v1/iam/users', { ...person, roles: ['developer'] }))['id']);
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${key}&act=edit&tenant=${TENANT}` });
    const drawer = page.getByRole('dialog');
    await addLimit(drawer, 'Tokens a minute', '40000');
    await drawer.getByText('Saved.', { exact: true }).waitFor();
    await drawer.getByRole('group', { name: 'Limit 1' }).scrollIntoViewIfNeeded();
    expect(await faultsInEveryLook(page, 'look rates key')).toEqual([]);
    expect(await manage('GET', `/v1/iam/api-keys/${key}`)).toMatchObject({
      rate_limits: [{ models: ['gpt-*'], tokens_per_minute: 40_000 }],
    });
    await drawer.getByRole('button', { name: 'Close' }).last().click();
    await drawer.getByText('40,000 tokens a minute').waitFor();

    await visit(page, `/console/users/${user}?tenant=${TENANT}`);
    await page.getByRole('button', { name: 'Edit user' }).click();
    await addLimit(drawer, 'Requests a minute', '60');
    await drawer.getByText('Saved.', { exact: true }).waitFor();
    await drawer.getByRole('button', { name: 'Close' }).last().click();
    await page.getByText('60 requests a minute').waitFor();

    await visit(page, `/console/tenants?open=${TENANT}&tenant=${TENANT}`);
    await addLimit(drawer, 'At the same time', '8');
    await drawer.getByText('Saved. All replicas apply it').waitFor();
    expect(await manage('GET', `/v1/iam/tenants/${TENANT}`)).toMatchObject({
      settings: { rate_limits: [{ models: ['gpt-*'], parallel: 8 }] },
    });
    expect(problems).toEqual([]);
  });
});
