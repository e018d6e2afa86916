/** The page of a trial beside another gate, with decisions of checks in shadow mode. */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { OTHER_GATE_REPORTED_AT } from '../../src/store/other-gate.ts';
import { done } from '../server/support/client.ts';
import { type DecisionSpec, decisionRow, storeDecisions } from '../support/recorded-decisions.ts';
import { applyLook, faultsInEveryLook, PHONE, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'beside';
const MINUTE_MS = 60_000;
const CHAT = { method: 'POST', path: '/v1/chat/completions', route: 'POST /v1/chat/completions' } as const;

let stand: ConsoleStand;
let user: string;
const ids: Record<string, string> = {};

it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  const api = (path: string, body: object) =>
    done(stand.server.http, 'POST', path, { token: stand.token, body, headers: { 'x-tenant-id': TENANT } });
  await done(stand.server.http, 'POST', '/v1/iam/tenants', {
    token: stand.token,
    body: { id: TENANT, name: 'Beside' },
  });
  const made = await api('/v1/iam/users', { email: 'nora@beside.example', name: 'Nora Lind', roles: ['developer'] });
  user = String(made.body['id']);
  const person = { principal_type: 'user', principal_id: user } as const;
  const denied = {
    ...CHAT,
    ...person,
    code: 'denied_by_policy',
    policy: 'no-llama',
    resources: ['models/llama-3'],
    detail: 'A policy denies this request.',
  } as const;
  const specs: Readonly<Record<string, DecisionSpec>> = {
    here: denied,
    both: denied,
    unknown: { code: 'missing_credential', client_request_id: null },
    there: { ...CHAT, ...person, outcome: 'allow', code: 'allow', detail: '', resources: ['models/gpt-4.1'] },
  };
  const rows = Object.entries(specs).map(([name, spec], index) => ({
    name,
    row: decisionRow({
      tenant_id: TENANT,
      shadow: true,
      client_request_id: `beside-${name}`,
      // Two of them are older than the last hour.
      atMs: Date.now() - (index % 2 === 0 ? 5 : 120) * MINUTE_MS,
      ...spec,
    }),
  }));
  for (const { name, row } of rows) ids[name] = row.request_id;
  await storeDecisions(
    stand.db,
    rows.map(({ row }) => row),
  );
  await stand.db.query({
    text: `insert into other_gate_denials (client_request_id) values ('beside-both'), ('beside-there')`,
    values: [],
  });
  for (const [code, decisions] of [
    ['denied_by_policy', 2],
    ['missing_credential', 1],
    ['allow', 4],
  ] as const) {
    await stand.db.query({
      text: `insert into shadow_decision_counts (tenant_id, minute, code, route, decisions)
        values ($1, date_trunc('minute', clock_timestamp() - interval '3 minutes'), $2, '', $3)`,
      values: [TENANT, code, decisions],
    });
  }
});

const open = (more = '') => stand.asAdmin({ path: `/console/trial?tenant=${TENANT}${more}` });
const main = (page: Page) => page.locator('main');
const requests = (page: Page) => page.getByRole('grid', { name: 'Requests' }).locator('tbody').getByRole('row');
const addressOf = (page: Page) => new URL(page.url()).searchParams;

/** Sets the time of the last report of the other gate, or takes it away. */
async function reported(at: string | null): Promise<void> {
  await stand.db.query({ text: 'delete from meta where name = $1', values: [OTHER_GATE_REPORTED_AT] });
  if (at === null) return;
  await stand.db.query({
    text: 'insert into meta (name, value) values ($1, $2)',
    values: [OTHER_GATE_REPORTED_AT, at],
  });
}

describe('the page of a trial', () => {
  it('says how many requests would have been denied, by reason and by principal, and how many the gates decide differently', async () => {
    await reported(new Date().toISOString());
    const { page, problems } = await open();
    await expect
      .poll(() => main(page).textContent())
      .toContain(
        '7 requests in the last 24 hours: 4 would have been allowed, 3 would have been denied. 2 recorded requests were decided otherwise by the other gate.',
      );
    const numbers = async (name: string): Promise<readonly (readonly string[])[]> => {
      const table = page.getByRole('table').filter({ has: page.getByRole('columnheader', { name }) });
      const rows = await table.locator('tbody tr').all();
      return Promise.all(rows.map((row) => row.locator('th, td').allTextContents()));
    };
    expect(await numbers('Reason')).toEqual([
      ['Denied by policypolicy no-llama', '2', '1'],
      ['No credential', '1', '0'],
    ]);
    const byPrincipal = await numbers('Principal');
    expect(
      byPrincipal.map(([name, ...counts]) => [name?.startsWith('Nora Lind') ? 'Nora Lind' : name, ...counts]),
    ).toEqual([
      ['Nora Lind', '2', '1'],
      ['no known principal', '1', '0'],
    ]);
    await main(page).getByText('3 decisions are beyond the bounds of the record').waitFor();
    expect(await main(page).getByText('No report of the other gate has come yet').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('lists the requests that only one gate denies, with filters in the address, and shows one whole with its explanation', async () => {
    await reported(new Date().toISOString());
    const { page, problems } = await open();
    await expect.poll(() => requests(page).count()).toBe(2);
    await page.getByRole('radio', { name: 'Denied there' }).click();
    await expect
      .poll(() => requests(page).allTextContents())
      .toEqual([expect.stringMatching(/would allow.*denied.*Nora Lind/)]);
    await page.getByRole('radio', { name: 'Denied here' }).click();
    await expect
      .poll(() => requests(page).allTextContents())
      .toEqual([expect.stringMatching(/would deny.*allowed.*Nora Lind/)]);
    await requests(page).first().click();
    const drawer = page.getByRole('dialog', { name: 'POST /v1/chat/completions' });
    await expect.poll(() => drawer.locator('dl').textContent()).toContain('A policy denies this request.');
    for (const fact of ['no-llama', 'Nora Lind', 'models/llama-3', ids['here'] ?? '', 'beside-here'])
      expect(await drawer.locator('dl').innerHTML()).toContain(fact);
    await drawer.getByRole('button', { name: 'Only this route' }).click();
    await page.getByRole('button', { name: 'Remove the filter Route' }).waitFor();
    expect([addressOf(page).get('kind'), addressOf(page).get('route')]).toEqual(['here', CHAT.route]);
    await page.getByRole('button', { name: 'No credential' }).click();
    await page.getByText('No request matches').waitFor();
    await page.getByRole('button', { name: 'Remove the filter Route' }).click();
    await expect.poll(() => requests(page).allTextContents()).toEqual([expect.stringMatching(/no known principal/)]);
    await visit(page, `/console/trial?tenant=${TENANT}&kind=there&open=${ids['both']}`);
    await page.getByRole('dialog').getByRole('link', { name: 'Explain' }).click();
    await expect.poll(() => addressOf(page).get('request_id')).toBe(ids['both']);
    await main(page).getByText('another gate decided the request').waitFor();
    expect(problems).toEqual([]);
  });

  it('counts the last hour only, on request', async () => {
    const { page, problems } = await open('&kind=all');
    await expect.poll(() => requests(page).count()).toBe(4);
    await page.getByRole('radio', { name: 'Last hour' }).click();
    await expect.poll(() => requests(page).count()).toBe(2);
    await expect.poll(() => main(page).textContent()).toContain('7 requests in the last hour');
    expect(problems).toEqual([]);
  });

  it('says that the other gate is not known while its access log has never reported', async () => {
    await reported(null);
    const { page, problems } = await open();
    await main(page).getByText('No report of the other gate has come yet').waitFor();
    expect(problems).toEqual([]);
  });

  it('says how to begin if there is no check in shadow mode, and does not count one in the overview', async () => {
    const empty = 'not-beside';
    await done(stand.server.http, 'POST', '/v1/iam/tenants', {
      token: stand.token,
      body: { id: empty, name: 'Empty' },
    });
    const { page, problems } = await stand.asAdmin({ path: `/console/trial?tenant=${empty}` });
    await main(page).getByText('postern envoy config --shadow --profile production').waitFor();
    expect(await faultsInEveryLook(page, 'trial empty')).toEqual([]);
    await visit(page, `/console/?tenant=${TENANT}`);
    await main(page).getByText('No request was decided').waitFor();
    await main(page).getByText('None in the last 24 hours.').waitFor();
    expect(problems).toEqual([]);
  });

  it('has no serious accessibility fault and fits the screen, whole, filtered and with a drawer, in both themes, on desktops and phones', async () => {
    await reported(null);
    const { page, problems } = await open('&kind=all');
    await expect.poll(() => requests(page).count()).toBe(4);
    expect(await faultsInEveryLook(page, 'trial')).toEqual([]);
    await applyLook(page, PHONE);
    await page.getByRole('button', { name: 'Nora Lind' }).click();
    await page.getByRole('button', { name: 'Remove the filter Principal' }).waitFor();
    await expect.poll(() => requests(page).count()).toBe(3);
    await requests(page).first().click();
    await page.getByRole('dialog').getByRole('link', { name: 'Explain' }).waitFor();
    expect(await faultsInEveryLook(page, 'trial drawer')).toEqual([]);
    expect(problems).toEqual([]);
  });
});
