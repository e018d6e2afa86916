import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { chooseOption, faultsInEveryLook, visit } from './support/browser.ts';
import { shoot } from './support/policies.ts';
import { makeSpender, type Spender, spendBudget, UNPRICED_MODEL } from './support/spend.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'console-budgets';

let stand: ConsoleStand;
let spender: Spender;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  spender = await makeSpender(stand, TENANT);
});

const manage = async (method: string, path: string, body?: object) =>
  (await done(stand.server.http, method, path, { token: stand.token, tenant: TENANT, body })).body;
const open = (path: string) =>
  stand.asAdmin({ path: `/console/${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}` });
const field = (place: Page | Locator, name: string) => place.getByRole('textbox', { name });

async function makeBudget(name: string, members: object = {}): Promise<string> {
  const budget = { name, unit: 'money', limit: '100.00', period: 'month', applies_to: { tenant: true }, ...members };
  return String((await manage('POST', '/v1/iam/budgets', budget))['id']);
}

describe('a budget', () => {
  it('is previewed with the last month, created, edited, reset with a reason and deleted', async () => {
    const { page, problems } = await open('budgets');
    await page.getByRole('button', { name: 'Create a budget' }).click();
    await field(page, 'Name').fill(' ');
    await page.getByText('A name must be 1 to 64').first().waitFor();
    await field(page, 'Name').fill('search-team');
    await field(page, 'Limit in USD').fill('100.1234567890');
    await page.getByText('at most 9 digits after the point').first().waitFor();
    await field(page, 'Limit in USD').fill('100.00');
    await page.getByRole('radio', { name: 'Keys', exact: true }).click();
    await page.getByRole('button', { name: 'Add a key' }).click();
    await chooseOption(page.getByRole('dialog').getByRole('option', { name: /^The shop/ }));
    await page.getByRole('button', { name: 'What would have been blocked last month' }).click();
    const preview = page.getByRole('region', { name: 'Last month' });
    // Each day costs 10 and has 5 requests, and the tenth day reaches the limit.
    await preview.getByText(/requests came after the limit was reached/).waitFor();
    await preview.getByText(/Reached on \d{4}-\d\d-10\./).waitFor();
    await shoot(page, 'new budget');
    await page.getByRole('button', { name: 'Create budget' }).click();
    await page.getByRole('heading', { level: 1, name: 'search-team' }).waitFor();
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    expect(await manage('GET', `/v1/iam/budgets/${id}`)).toMatchObject({
      ...{ unit: 'money', limit: '100.00', period: 'month', applies_to: { keys: [spender.key] }, per: 'all' },
      ...{ models: null, action: 'block', alerts: [0.8, 1], enabled: true },
    });

    await spendBudget(stand, TENANT, id, 82.5);
    await page.reload();
    const now = page.getByRole('region', { name: 'This period' });
    await now.getByText('$82.50 of $100.00').waitFor();
    await now.getByText(/^\$17\.50 left, resets in/).waitFor();
    await page.getByRole('region', { name: 'By model' }).getByText('$70.25').waitFor();
    await page.getByRole('region', { name: 'By key' }).getByRole('link', { name: 'The shop' }).waitFor();
    await shoot(page, 'budget');
    await page.getByRole('radio', { name: 'Only report' }).click();
    await page.getByRole('button', { name: 'Save budget' }).click();
    await page.getByText('Saved. It holds on all replicas').waitFor();
    await page.getByRole('radio', { name: 'Per user' }).click();
    await page.getByText('This starts the budget over').waitFor();
    await page.getByRole('button', { name: 'Discard' }).click();

    await page.getByRole('button', { name: 'Reset', exact: true }).click();
    const dialog = page.getByRole('alertdialog');
    const reset = dialog.getByRole('button', { name: 'Reset' });
    expect(await reset.getAttribute('aria-disabled')).toBe('true');
    await field(dialog, 'Reason').fill('approved by finance');
    await reset.click();
    await now.getByText('$0.00 of $100.00').waitFor();
    const { data } = await manage('GET', '/v1/iam/audit?action=budget.reset');
    expect(JSON.stringify(data)).toContain('approved by finance');

    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'delete' }).click();
    await field(dialog, 'Type search-team to confirm').fill('search-team');
    await dialog.getByRole('button', { name: 'Delete budget' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/budgets');
    expect(await manage('GET', '/v1/iam/budgets?q=search-team')).toMatchObject({ data: [] });
    expect(problems).toEqual([]);
  });

  it('is deleted after its name is typed as the page shows it: spaces in a row are one, and an accent has two forms', async () => {
    const id = await makeBudget('Büro  Süd'.normalize('NFD'));
    const { page, problems } = await open(`budgets/${id}`);
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'delete' }).click();
    const dialog = page.getByRole('alertdialog');
    const remove = dialog.getByRole('button', { name: 'Delete budget' });
    await field(dialog, 'to confirm').fill('Büro Nord');
    expect(await remove.getAttribute('aria-disabled')).toBe('true');
    await field(dialog, 'to confirm').fill('Büro Süd');
    await remove.click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/budgets');
    expect(await manage('GET', '/v1/iam/budgets?q=ro')).toMatchObject({ data: [] });
    expect(problems).toEqual([]);
  });
});

describe('the spend', () => {
  it('is shown by user, key and model, with a forecast, the fullest budgets and the models without a price', async () => {
    await spendBudget(stand, TENANT, await makeBudget('nearly-spent', { limit: '80.00' }), 75.5);
    await makeBudget('ample', { unit: 'tokens', limit: 5_000_000 });
    const { page, problems } = await open('spend');
    await page.locator('p').getByText('$75.50', { exact: true }).waitFor();
    // On the first day of a month there is no forecast.
    if (new Date().getUTCDate() > 1) await page.getByText(/At this pace about/).waitFor();
    const budgets = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Budgets' }) });
    await expect.poll(() => budgets.getByRole('listitem').first().textContent()).toContain('$75.50 of $80.00');
    await page.getByText(/^8 requests named a model without a price/).waitFor();
    await expect.poll(() => page.getByRole('row', { name: /Ada Spender/ }).textContent()).toContain('$70.25');
    await page.getByRole('radio', { name: 'Model' }).click();
    await expect
      .poll(() => page.getByRole('row', { name: new RegExp(UNPRICED_MODEL) }).textContent())
      .toContain('no price');
    await page.getByRole('link', { name: `Set a price for ${UNPRICED_MODEL}` }).click();
    await expect.poll(() => field(page.getByRole('dialog'), 'Model').inputValue()).toBe(UNPRICED_MODEL);
    expect(problems).toEqual([]);
  });
});

describe('what is left of a budget', () => {
  it('is shown to a user in its account, with the amounts that belong to it alone', async () => {
    await makeBudget('of-ada', { unit: 'requests', limit: 40, applies_to: { users: [spender.user] } });
    await makeBudget('of-all', { limit: '12.00' });
    const { page, problems } = await stand.signIn({ person: spender.person, path: '/console/account' });
    const section = page.locator('section').filter({ has: page.getByRole('heading', { name: 'What is left' }) });
    await expect.poll(() => section.textContent()).toMatch(/of-ada0 of 4040 left, resets in/);
    await expect
      .poll(() => section.textContent())
      .toMatch(/of-allshared with others, the amount is not shown, resets in/);
    expect(await section.textContent()).not.toContain('12');
    expect(await faultsInEveryLook(page, 'look account')).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('is a step of an explanation, with the amount that the request sets aside, and the change that lets the request pass', async () => {
    const path = `explain?user=${spender.user}&method=POST&path=/v1/chat/completions&model=gpt-4o`;
    const { page, problems } = await open(path);
    await page.getByRole('link', { name: 'budget of-ada' }).waitFor();
    await shoot(page, 'explained budget');
    await makeBudget('of-none', { unit: 'requests', limit: 0, applies_to: { users: [spender.user] } });
    await page.goto(`/console/${path}&tenant=${TENANT}`);
    const change = page.getByRole('listitem').filter({ hasText: 'Raise the limit of the budget of-none.' });
    await change.getByRole('link', { name: 'Open budget' }).click();
    await page.getByRole('heading', { level: 1, name: 'of-none' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the screens of budgets', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    const id = await makeBudget('looked-at', { limit: '50.00', models: ['gpt-*'] });
    await spendBudget(stand, TENANT, id, 55);
    await makeBudget('looked-at-own', { per: 'key', applies_to: { roles: ['developer'] } });
    const { page, problems } = await open('budgets');
    for (const path of ['budgets', `budgets/${id}`, 'new-budget', 'spend', 'spend?by=model']) {
      await visit(page, `/console/${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}`);
      expect(await faultsInEveryLook(page, `look ${path.replace(id, 'id')}`)).toEqual([]);
    }
    expect(problems).toEqual([]);
  });
});
