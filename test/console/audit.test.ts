import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { ACTIONS } from '../../console/src/screens/audit/actions.ts';
import { done, makeUser } from '../server/support/client.ts';
import { applyLook, chooseOption, cutTexts, faultsInEveryLook, PHONE } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let requestId: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  await api('POST', '/v1/iam/roles', { name: 'support', description: 'First', permissions: ['chat:read'] });
  const changed = await api('PUT', '/v1/iam/roles/support', { description: 'Second' });
  requestId = String(changed.headers['x-request-id']);
  const policy = { name: 'hours', effect: 'deny', actions: ['chat:write'], resources: ['*'], enabled: false };
  await api('POST', '/v1/iam/policies', policy);
});

const api = (method: string, path: string, body?: object) =>
  done(stand.server.http, method, path, { token: stand.token, body });
const rows = (page: Page) => page.getByRole('grid', { name: 'Audit' }).getByRole('row');
/** The rows in which the text of one cell lies over that of another one. */
const OVERLAPPING = `[...document.querySelectorAll('main tbody tr')]
  .filter((row) => {
    const boxes = [...row.cells].flatMap((cell) => {
      const range = document.createRange();
      range.selectNodeContents(cell);
      return [...range.getClientRects()].map((box) => ({ cell, box }));
    });
    return boxes.some((one) => boxes.some((other) => one.cell !== other.cell &&
      one.box.left + 1 < other.box.right && other.box.left + 1 < one.box.right &&
      one.box.top + 1 < other.box.bottom && other.box.top + 1 < one.box.bottom));
  })
  .map(({ textContent }) => textContent)`;
const searchOf = (page: Page) => new URL(page.url()).searchParams;
const actionsShown = async (page: Page): Promise<readonly string[]> =>
  [
    ...new Set(
      await page
        .getByRole('grid', { name: 'Audit' })
        .locator('td:nth-child(3), [role=gridcell]:nth-child(3)')
        .allTextContents(),
    ),
  ].toSorted((a, b) => a.localeCompare(b));

describe('the audit log', () => {
  it('says how far it is sealed, and to a tenant administrator who sees that', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/audit' });
    await expect
      .poll(() => page.locator('main header').textContent(), { timeout: 30_000 })
      .toMatch(
        /The chain seals [\d,]+ rows of all tenants in [\d,]+ seals, the newest .* verify-audit checks it\. Hash of the newest: [0-9a-f]{8}…/,
      );
    expect(problems).toEqual([]);
    const person = await makeUser(stand.server.http, stand.token, { roles: ['auditor'] });
    const other = await stand.signIn({ person, path: '/console/audit' });
    await other.page.getByText('platform administrators see its state').waitFor();
    expect(other.problems).toEqual([]);
  });

  it('opens at one request, with what changed as a difference, and gives a link to the row', async () => {
    const { page, problems } = await stand.asAdmin({ path: `/console/audit?request_id=${requestId}` });
    await page.getByRole('button', { name: 'Remove the filter Request' }).waitFor();
    await page.getByText('role.update', { exact: true }).first().click();
    const drawer = page.getByRole('dialog', { name: 'role.update' });
    await expect.poll(() => drawer.getByRole('table').textContent()).toMatch(/description\s*"First"\s*"Second"/);
    expect(await drawer.getByRole('link', { name: 'role/support' }).getAttribute('href')).toMatch(
      /^\/console\/roles\/support/,
    );
    await drawer.getByRole('button', { name: 'Copy link to this row' }).click();
    await drawer.getByRole('button', { name: 'Copied' }).waitFor();
    const link = await page.evaluate('navigator.clipboard.readText()');
    await page.goto(String(link));
    await page.getByRole('dialog', { name: 'role.update' }).waitFor();
    expect(searchOf(page).get('request_id')).toBe(requestId);
    expect(problems).toEqual([]);
  });

  it('says that the row of an address is not among those that are shown', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/audit?open=999999999' });
    await page.getByText('The row of this address is not among those that are shown').waitFor();
    expect(problems).toEqual([]);
  });

  it('is filtered by actor, action and result, and the address has the filters', async () => {
    const person = await makeUser(stand.server.http, stand.token, { roles: ['auditor'] });
    const { page, problems } = await stand.asAdmin({ path: '/console/audit' });
    await page.getByRole('button', { name: 'Actor', exact: true }).click();
    await page.getByRole('combobox', { name: 'Find an actor' }).fill('admin@localhost');
    await chooseOption(page.getByRole('option', { name: /admin@localhost/ }));
    await expect.poll(() => searchOf(page).get('actor')).toMatch(/^usr_/);
    await page.getByRole('button', { name: 'Action', exact: true }).click();
    await page.getByRole('option').first().waitFor();
    expect(await cutTexts(page)).toEqual([]);
    await page.getByRole('combobox', { name: 'Find an action' }).fill('role.');
    await page.keyboard.press('ArrowDown');
    await chooseOption(page.getByRole('option', { name: 'role.create' }));
    await expect.poll(() => actionsShown(page)).toEqual(['role.create']);
    await page.getByRole('button', { name: 'Remove the filter Action' }).click();
    await page.getByRole('button', { name: 'Remove the filter Actor' }).click();
    await page.getByRole('button', { name: 'Actor', exact: true }).click();
    await page.getByRole('combobox', { name: 'Find an actor' }).fill(person.id);
    await chooseOption(page.getByRole('option', { name: person.id }));
    await page.getByText('No row matches').waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: 'Remove the filter Actor' }).waitFor({ state: 'detached' });
    await page
      .getByRole('radio', { name: 'failure' })
      .or(page.getByRole('button', { name: 'failure' }))
      .first()
      .click();
    await expect.poll(() => searchOf(page).get('result')).toBe('failure');
    expect(problems).toEqual([]);
  });

  it('is filtered by the time: the last hour, or between two moments', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/audit' });
    await page.getByRole('button', { name: 'Time', exact: true }).click();
    await page.getByRole('button', { name: 'Last hour' }).click();
    await page.getByRole('button', { name: 'Remove the filter From' }).waitFor();
    await expect.poll(() => rows(page).count()).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Time', exact: true }).click();
    await page.getByRole('textbox', { name: /^From/ }).fill('2020-01-01T00:00');
    await page.getByRole('textbox', { name: /^Before/ }).fill('2020-01-02T00:00');
    await page.getByRole('button', { name: 'Show this time' }).click();
    await page.getByText('No row matches').waitFor();
    // Berlin is an hour before UTC in January.
    expect([searchOf(page).get('from'), searchOf(page).get('to')]).toEqual([
      '2019-12-31T23:00:00.000Z',
      '2020-01-01T23:00:00.000Z',
    ]);
    expect(problems).toEqual([]);
  });

  it('finds the rows of a user by its name and address, as its rows show them, in one request', async () => {
    const email = 'grace@audit.example';
    const { body } = await api('POST', '/v1/iam/users', { email, name: 'Grace Hopper', roles: ['auditor'] });
    expect(body['name']).toBe('Grace Hopper');
    const { page, problems } = await stand.asAdmin({ path: '/console/audit' });
    const search = page.getByRole('searchbox', { name: 'Search the audit log' });
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    for (const q of ['grace hop', email]) {
      await search.fill(q);
      await expect.poll(() => searchOf(page).get('q')).toBe(q);
      await expect.poll(() => actionsShown(page)).toEqual(['user.create']);
      await page.getByRole('link', { name: 'Grace Hopper' }).waitFor();
    }
    expect(asked.filter((path) => path.startsWith('/v1/iam/users'))).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('is filtered by a target that is typed, and the field follows a link to another search', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/audit' });
    const search = page.getByRole('searchbox', { name: 'Search the audit log' });
    await search.fill('policy/hours');
    await expect.poll(() => actionsShown(page)).toEqual(['policy.create']);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search or jump to' }).fill(requestId);
    await chooseOption(page.getByRole('option', { name: `Show what ${requestId} changed` }));
    await page.getByRole('button', { name: 'Remove the filter Request' }).waitFor();
    await expect.poll(() => search.inputValue()).toBe('');
    await expect.poll(() => actionsShown(page)).toEqual(['role.update']);
    expect(searchOf(page).get('q')).toBe(null);
    expect(problems).toEqual([]);
  });

  it.each([
    { choice: 'As CSV', name: 'audit-default.csv', holds: /^id,time,/ },
    { choice: 'As NDJSON', name: 'audit-default.ndjson', holds: /^\{"id":/ },
  ])('is saved $choice, with the filters that are set', async ({ choice, name, holds }) => {
    const { page, problems } = await stand.asAdmin({ path: '/console/audit?action=role.update' });
    await page.getByRole('button', { name: 'Export' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('menuitem', { name: choice }).click();
    const saved = await download;
    expect(saved.suggestedFilename()).toBe(name);
    const text = await readFile(await saved.path(), 'utf8');
    expect(text).toMatch(holds);
    expect(text).toContain('role.update');
    expect(text).not.toContain('role.create');
    expect(problems).toEqual([]);
  });

  it('offers every action that the server records', async () => {
    const sources = await Promise.all(globSync('src/**/*.ts').map((path) => readFile(path, 'utf8')));
    const recorded = sources.flatMap((source) =>
      [...source.matchAll(/\baction: '([a-z_]+\.[a-z_]+)'/g)].map(([, action]) => action),
    );
    expect(recorded.length).toBeGreaterThan(30);
    expect([...new Set(recorded)].filter((action) => !ACTIONS.some((known) => known === action))).toEqual([]);
  });

  it('has no serious accessibility fault in the list, the filters and the drawer, in both themes, on desktops and phones', async () => {
    const longName = 'of-people'.padEnd(60, '-who-read');
    await api('POST', '/v1/iam/roles', { name: longName, permissions: ['chat:read'] });
    await api('PUT', `/v1/iam/roles/${longName}`, { description: 'Changed' });
    const { page, problems } = await stand.asAdmin({
      path: '/console/audit?action=role.update&from=2026-01-01T00:00:00Z',
    });
    const row = page.getByText('role.update', { exact: true }).first();
    await row.waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await applyLook(page, PHONE);
    expect(await page.evaluate(OVERLAPPING)).toEqual([]);
    await page.getByRole('button', { name: 'Time', exact: true }).click();
    const before = page.getByRole('textbox', { name: /^Before/ });
    await before.waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(await before.isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await applyLook(page, PHONE);
    await row.click();
    const drawer = page.getByRole('dialog', { name: 'role.update' }).getByRole('table');
    await drawer.waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(await drawer.isVisible()).toBe(true);
    expect(problems).toEqual([]);
  });
});
