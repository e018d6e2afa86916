import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, done, makeKey, makeUser } from '../server/support/client.ts';
import { accessibilityFaults, DESKTOP, PHONE } from './support/browser.ts';
import { type ConsoleStand, startConsole } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
beforeAll(async () => {
  stand = await startConsole();
  http = stand.server.http;
});
afterAll(() => stand?.close());

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });
const policy = async (name: string) => (await manage('GET', `/v1/iam/policies/${name}`)).body;

/** What Envoy answers to a request with the key: the status, and the policy that denied. */
async function ask(key: string, path = '/v1/chat/history'): Promise<string> {
  const answer = await fetch(`${stand.edge.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  const text = await answer.text();
  return answer.status === 403 ? `403 ${JSON.parse(text).policy}` : String(answer.status);
}

/** A key whose owner is a developer. */
async function developerKey(): Promise<{ readonly id: string; readonly key: string; readonly owner: string }> {
  const user = await makeUser(http, stand.token, { roles: ['developer'] });
  return { ...(await makeKey(http, stand.token, { owner: user.id, scopes: ['chat:*', 'embeddings:*'] })), owner: user.id };
}

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const clock = (hour: number) => `${String(hour).padStart(2, '0')}:00`;

/** @param hour of the week, 0 = Monday 00:00; any whole number */
function cell(page: Page, hour: number): Locator {
  const ofWeek = ((hour % 168) + 168) % 168;
  const start = ofWeek % 24;
  return page.getByRole('gridcell', { name: `${DAYS[Math.floor(ofWeek / 24)]} ${clock(start)} to ${clock(start + 1)}` });
}

/** The hour of the week by UTC, which is the tenant's clock. */
function hourNow(): number {
  const now = new Date();
  return ((now.getUTCDay() + 6) % 7) * 24 + now.getUTCHours();
}

/** Says which hours of the week are lit. */
function lit(page: Page): Promise<number> {
  return page.getByRole('gridcell', { selected: true }).count();
}

async function chooseAction(page: Page, pattern: string): Promise<void> {
  await page.getByRole('searchbox', { name: 'Search: Actions' }).fill(pattern);
  await page.getByRole('option', { name: pattern, exact: false }).first().click();
}

describe('the list of policies', () => {
  it('finds a policy by name, effect and state, and opens it', async () => {
    const rule = { actions: ['chat:read'], resources: ['models/list-only'] };
    await manage('POST', '/v1/iam/policies', { name: 'list-deny', effect: 'deny', ...rule });
    await manage('POST', '/v1/iam/policies', { name: 'list-allow', effect: 'allow', ...rule });
    await manage('POST', '/v1/iam/policies', { name: 'list-off', effect: 'deny', ...rule, enabled: false });
    const { page, problems } = await stand.signIn({ path: '/console/policies?effect=deny' });
    await page.getByRole('row', { name: 'list-deny' }).waitFor();
    expect(await page.getByRole('row', { name: 'list-allow' }).count()).toBe(0);
    await page.getByRole('radiogroup', { name: 'Effect' }).getByRole('radio', { name: 'All', exact: true }).click();
    await page.getByRole('row', { name: 'list-allow' }).getByText('nobody', { exact: true }).waitFor();
    await page.getByRole('radio', { name: 'Off', exact: true }).click();
    await expect.poll(() => page.getByRole('row', { name: 'list-' }).count()).toBe(1);
    await page.getByText('Off. When on, it denies chat history on models/list-only to everyone.').waitFor();
    await page.getByRole('radio', { name: 'On and off' }).click();
    await page.getByRole('searchbox', { name: 'Search policies' }).fill('list-allow');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await page.getByRole('row', { name: 'list-allow' }).click();
    await page.getByRole('heading', { level: 1, name: 'list-allow' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('a policy drawn in the week grid', () => {
  it('denies a request through Envoy in a lit hour, and no longer after its hours are darkened', async () => {
    const { key } = await developerKey();
    await expect.poll(() => ask(key)).toBe('200');
    const { page, problems } = await stand.signIn({ path: '/console/new-policy' });
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Drawn Hours');
    await page.getByText('A name is 1 to 63').first().waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('drawn-hours');
    await chooseAction(page, 'chat:*');
    await page.getByRole('radio', { name: 'Holders of roles' }).click();
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('developer');
    await page.getByRole('option', { name: 'developer' }).click();
    await page.getByRole('button', { name: 'Hours of the week' }).click();
    await page.getByText('Denies chat outside Mon-Fri 08:00-18:00 (UTC) to developers.').waitFor();

    await page.getByRole('radiogroup', { name: 'Operator of weekly_hours' }).getByRole('radio', { name: 'inside' }).click();
    await page.getByRole('columnheader', { name: 'All of the week' }).click();
    await expect.poll(() => lit(page)).toBe(168);
    await page.getByText('Denies chat at any time (UTC) to developers.').waitFor();
    // Half a day from now is dark, so the present hour stays lit however long this takes.
    const far = hourNow() + 12;
    await cell(page, far).hover();
    await page.mouse.down();
    await page.mouse.up();
    await expect.poll(() => lit(page)).toBe(167);
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'drawn-hours' }).waitFor();
    await expect.poll(() => ask(key)).toBe('403 drawn-hours');

    // Seven hours around the present by a drag along the day, or along what is left of it.
    await page.getByRole('columnheader', { name: 'All of the week' }).click();
    await expect.poll(() => lit(page)).toBe(168);
    await page.getByRole('columnheader', { name: 'All of the week' }).click();
    await expect.poll(() => lit(page)).toBe(0);
    await page.getByText('Light at least one hour.').first().waitFor();
    expect(await page.getByRole('button', { name: 'Save policy' }).getAttribute('aria-disabled')).toBe('true');
    await drag(page, cell(page, far), cell(page, far));
    await expect.poll(() => lit(page)).toBe(1);
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(key)).toBe('200');
    expect(problems).toEqual([]);
  });

  it('fills the rectangle of a drag, and takes it back where the drag turns round', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'dragged',
      effect: 'deny',
      actions: ['models:write'],
      resources: ['*'],
      conditions: { weekly_hours: { not_in: ['Sun 00:00-01:00'] } },
    });
    const { page, problems } = await stand.signIn({ path: '/console/policies/dragged' });
    await drag(page, cell(page, 9), cell(page, 4 * 24 + 20), cell(page, 4 * 24 + 17));
    await page.getByText('Mon-Fri 09:00-18:00, Sun 00:00-01:00', { exact: true }).waitFor();
    await page.getByRole('rowheader', { name: 'All of Saturday' }).click();
    await page.getByRole('columnheader', { name: '00:00 of all days' }).click();
    await page.getByText('Mon-Fri 09:00-18:00, Sat 00:00-24:00, Sun-Fri 00:00-01:00', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    expect((await policy('dragged'))['conditions']).toEqual({
      weekly_hours: { not_in: ['Mon-Fri 09:00-18:00', 'Sat 00:00-24:00', 'Sun-Fri 00:00-01:00'] },
    });
    expect(problems).toEqual([]);
  });

  it('is made, drawn and saved by keyboard alone', async () => {
    const { key } = await developerKey();
    const { page, problems } = await stand.signIn({ path: '/console/policies' });
    const { keyboard } = page;
    await page.getByRole('row').nth(1).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Create a policy' }));
    await keyboard.press('Enter');
    await expectFocus(page.getByRole('textbox', { name: 'Name', exact: true }));
    await keyboard.type('by-keyboard');
    await tabTo(page, page.getByRole('searchbox', { name: 'Search: Actions' }));
    await keyboard.type('chat history');
    await page.getByRole('option', { name: 'chat:read' }).waitFor();
    await tabTo(page, page.getByRole('option', { name: 'chat:read' }));
    await keyboard.press('Space');
    await page.getByRole('button', { name: 'Remove chat:read' }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Hours of the week' }));
    await keyboard.press('Enter');
    await expectFocus(page.getByRole('group', { name: 'weekly_hours' }));
    await tabTo(page, page.getByRole('radio', { name: 'outside' }));
    await keyboard.press('ArrowRight');
    await keyboard.press('Space');
    await tabTo(page, cell(page, 8));
    // Up to the names of hours and left to the corner: the whole week, once dark, once lit.
    for (let step = 0; step < 9; step++) await keyboard.press('ArrowLeft');
    await expectFocus(page.getByRole('rowheader', { name: 'All of Monday' }));
    await keyboard.press('ArrowUp');
    await expectFocus(page.getByRole('columnheader', { name: 'All of the week' }));
    await keyboard.press('Space');
    await expect.poll(() => lit(page)).toBe(168);
    // A rectangle of two days and three hours, far from now, is darkened together.
    const far = hourNow() + 84;
    const day = Math.min(Math.floor((far % 168) / 24), 5);
    for (let step = -1; step < day; step++) await keyboard.press('ArrowDown');
    await keyboard.press('Home');
    for (let step = 0; step < 2; step++) await keyboard.press('Shift+ArrowRight');
    await keyboard.press('Shift+ArrowDown');
    await keyboard.press('Space');
    await expect.poll(() => lit(page)).toBe(162);
    await tabTo(page, page.getByRole('button', { name: 'Create policy' }));
    await keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'by-keyboard' }).waitFor();
    await expect.poll(() => ask(key)).toBe('403 by-keyboard');
    await manage('DELETE', '/v1/iam/policies/by-keyboard');
    expect(problems).toEqual([]);
  });

  it('is turned on a phone, where its arrows follow what is seen', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'turned',
      effect: 'deny',
      actions: ['models:write'],
      resources: ['*'],
      conditions: { weekly_hours: { in: ['Mon 08:00-09:00'] } },
    });
    const { page, problems } = await stand.signIn({ path: '/console/policies/turned', look: PHONE });
    await cell(page, 8).focus();
    await page.keyboard.press('ArrowDown');
    await expectFocus(cell(page, 9));
    await page.keyboard.press('ArrowRight');
    await expectFocus(cell(page, 24 + 9));
    await page.keyboard.press('Space');
    await page.getByText('Mon 08:00-09:00, Tue 09:00-10:00', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the editor of a policy', () => {
  it('tells while one types whether an address matches, and which texts are no networks, times or windows', async () => {
    const { page, problems } = await stand.signIn({ path: '/console/new-policy' });
    await page.getByRole('button', { name: 'Address', exact: true }).click();
    const networks = page.getByRole('textbox', { name: 'Networks' });
    await networks.fill('10.20.0.1/16');
    await page.getByText('Write an IP address or a CIDR block').waitFor();
    await networks.fill('10.20.0.0/16');
    await networks.press('Enter');
    await networks.fill('2001:db8::/32');
    await networks.press('Enter');
    const tried = page.getByRole('textbox', { name: 'Does it match?' });
    await tried.fill('10.20.14');
    await page.getByText('This is no IP address.').waitFor();
    await tried.fill('10.20.14.9');
    await page.getByText('10.20.14.9 is in 10.20.0.0/16, so the condition does not hold.').waitFor();
    await tried.fill('::ffff:10.21.0.1');
    await page.getByText('::ffff:10.21.0.1 is in none of them, so the condition holds.').waitFor();
    await page.getByText('from outside 10.20.0.0/16 and 2001:db8::/32 to everyone.').waitFor();

    await page.getByRole('button', { name: 'Time of day' }).click();
    await page.getByText('It goes over midnight into the next day.').waitFor();
    await page.getByRole('textbox', { name: 'End' }).fill('25:00');
    await page.getByText('Write HH:MM').first().waitFor();
    await page.getByRole('textbox', { name: 'End' }).fill('22:00');
    await page.getByText('Give a start and an end that differ.').waitFor();
    await page.getByRole('textbox', { name: 'End' }).fill('24:00');
    await page.getByRole('button', { name: 'Days', exact: true }).click();
    await page
      .getByRole('radio', { name: 'Sat' })
      .or(page.getByRole('button', { name: 'Sat', exact: true }))
      .click();
    await page.getByText('on Sun during 22:00-24:00 (UTC)').waitFor();

    await page.getByRole('button', { name: 'Hours of the week' }).click();
    await page.getByRole('radio', { name: 'Text' }).click();
    const windows = page.getByRole('textbox', { name: 'Windows' });
    await windows.fill('Mon-Fri 8-18');
    await page.getByText('Write days and a time span').waitFor();
    await windows.fill('Sat 22:30-02:00');
    await windows.press('Enter');
    await page.getByText('These windows do not begin and end at full hours').waitFor();

    const clockOf = page.getByRole('combobox', { name: 'On the clock of' });
    await clockOf.click();
    await clockOf.pressSequentially('Europe/Berl');
    await page.getByRole('option', { name: 'Europe/Berlin' }).click();
    await page.getByText('(Europe/Berlin)').waitFor();

    const resources = page.getByRole('textbox', { name: 'Resources' });
    await resources.fill('model/gpt');
    await page.getByText('Write *, or models/…').waitFor();
    await resources.fill('models/gpt-*');
    await resources.press('Enter');
    await page.getByRole('button', { name: 'Remove *', exact: true }).click();
    await chooseAction(page, 'embeddings:write');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('all-conditions');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'all-conditions' }).waitFor();
    expect(await policy('all-conditions')).toMatchObject({
      effect: 'deny',
      actions: ['embeddings:write'],
      resources: ['models/gpt-*'],
      applies_to: 'everyone',
      conditions: {
        weekly_hours: { not_in: ['Mon-Fri 08:00-18:00', 'Sat 22:30-02:00'] },
        day_of_week: { in: ['Sun'] },
        time: { between: ['22:00', '24:00'] },
        ip_address: { not_in: ['10.20.0.0/16', '2001:db8::/32'] },
        timezone: 'Europe/Berlin',
      },
    });
    expect(problems).toEqual([]);
  });

  it('attaches a policy to a role and detaches it, which requests meet', async () => {
    const { key } = await developerKey();
    await manage('POST', '/v1/iam/policies', {
      name: 'attached-here',
      effect: 'deny',
      actions: ['chat:read'],
      resources: ['*'],
      applies_to: 'roles',
    });
    const { page, problems } = await stand.signIn({ path: '/console/policies/attached-here' });
    await page.getByText('to nobody, because no role is attached.').waitFor();
    await page.getByText('Nobody: no role is attached.').waitFor();
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('developer');
    await page.getByRole('option', { name: 'developer' }).click();
    await page.getByRole('link', { name: /^\d+ users?$/ }).waitFor();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(key)).toBe('403 attached-here');
    await page.getByRole('button', { name: 'Remove developer' }).click();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(key)).toBe('200');
    expect((await policy('attached-here'))['attached_roles']).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('sends only changed members, and keeps what was typed when somebody else saved first', async () => {
    await manage('POST', '/v1/iam/policies', { name: 'contested', effect: 'deny', actions: ['rag:write'], resources: ['*'] });
    const { page, problems } = await stand.signIn({ path: '/console/policies/contested' });
    const sent: unknown[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PUT') sent.push(request.postDataJSON());
    });
    const save = page.getByRole('button', { name: 'Save policy' });
    await save.waitFor();
    expect(await save.getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('textbox', { name: 'Description' }).fill('Ours');
    await manage('PUT', '/v1/iam/policies/contested', { resources: ['collections/hr'] });
    await save.click();
    await page.getByText('Somebody else saved a change').waitFor();
    await page.getByRole('button', { name: 'Continue with the newest' }).click();
    await page.getByRole('button', { name: 'Remove collections/hr' }).waitFor();
    await save.click();
    await page.getByText('Saved. It is in force').waitFor();
    expect(sent).toEqual([{ description: 'Ours' }, { description: 'Ours' }]);
    expect(await policy('contested')).toMatchObject({ description: 'Ours', resources: ['collections/hr'] });
    expect(problems).toEqual([]);
  });

  it('deletes a policy after its name is typed', async () => {
    await manage('POST', '/v1/iam/policies', { name: 'unwanted', effect: 'deny', actions: ['rag:write'], resources: ['*'] });
    const { page, problems } = await stand.signIn({ path: '/console/policies/unwanted' });
    await page.getByRole('button', { name: 'Delete policy' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByRole('textbox').fill('unwanted');
    await dialog.getByRole('button', { name: 'Delete policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'Policies' }).waitFor();
    expect((await call(http, 'GET', '/v1/iam/policies/unwanted', { token: stand.token })).status).toBe(404);
    expect(problems).toEqual([]);
  });

  it('says that a policy would lock its author out, and saves it only when told to', async () => {
    const tenant = 'locked-out';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Locked out' });
    const person = await makeUser(http, stand.token, { roles: ['tenant-admin'], tenant });
    const { page, problems } = await stand.signIn({ person, path: '/console/new-policy' });
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('self-harm');
    await chooseAction(page, 'admin:policies');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByText('This would deny you the management of policies right now.').waitFor();
    expect((await call(http, 'GET', '/v1/iam/policies/self-harm', { token: stand.token, tenant })).status).toBe(404);
    await page.getByRole('button', { name: 'Save anyway' }).click();
    await expect
      .poll(async () => (await call(http, 'GET', '/v1/iam/policies/self-harm', { token: stand.token, tenant })).status)
      .toBe(200);
    expect(problems).toEqual([]);
  });
});

describe('the simulation of a policy', () => {
  it('shows newly denied and newly allowed requests per user and key, and saves nothing', async () => {
    const { id, key, owner } = await developerKey();
    await manage('PUT', `/v1/iam/api-keys/${id}`, { description: 'nightly chat' });
    await manage('PUT', `/v1/iam/users/${owner}`, { name: 'Jonas Brandt' });
    await manage('POST', '/v1/iam/policies', {
      name: 'tried',
      effect: 'deny',
      actions: ['embeddings:*'],
      resources: ['*'],
    });
    const { page, problems } = await stand.signIn({ path: '/console/policies/tried' });
    await page.getByRole('button', { name: 'Remove embeddings:*' }).click();
    await page.getByText('Choose at least one action.').first().waitFor();
    await chooseAction(page, 'chat:*');

    await addRequest(page, 'nightly chat', 'Chat completion');
    await addRequest(page, 'nightly chat', 'Chat history');
    await addRequest(page, 'Jonas Brandt', 'Embeddings');
    await addRequest(page, 'Jonas Brandt', 'List of models');
    await page.getByRole('button', { name: 'Simulate' }).click();
    const result = page.getByRole('status').filter({ hasText: 'newly denied' });
    await result.waitFor();
    await expect.poll(() => result.locator('dd').allTextContents()).toEqual(['2', '1', '1']);
    const entries = await result.getByRole('listitem').allTextContents();
    expect(entries).toHaveLength(2);
    expect(entries[0]).toMatch(/^nightly chat2 requests, POST \/v1\/chat\/completions now by triedallowed → denied$/);
    expect(entries[1]).toMatch(/^Jonas BrandtPOST \/v1\/embeddings nowdenied → allowed$/);
    await page.getByRole('textbox', { name: 'Description' }).fill('Changed since');
    await page.getByText('The policy or the requests changed since.').waitFor();
    expect(await ask(key)).toBe('200');
    expect((await policy('tried'))['actions']).toEqual(['embeddings:*']);
    await manage('DELETE', '/v1/iam/policies/tried');
    expect(problems).toEqual([]);
  });
});

describe('the screens of policies', () => {
  const looks = [
    { look: { ...DESKTOP, theme: 'light' }, name: 'light at 1440 px' },
    { look: { ...DESKTOP, theme: 'dark' }, name: 'dark at 1440 px' },
    { look: { ...PHONE, theme: 'light' }, name: 'light at 390 px' },
    { look: { ...PHONE, theme: 'dark' }, name: 'dark at 390 px' },
  ] as const;
  it.each(looks)('have no serious accessibility fault in $name', async ({ look, name }) => {
    const policyName = `looked-at-${look.theme}-${look.width}`;
    await manage('POST', '/v1/iam/policies', {
      name: policyName,
      effect: 'deny',
      actions: ['embeddings:*'],
      resources: ['models/gpt-*'],
      attached_roles: ['developer'],
      conditions: {
        weekly_hours: { not_in: ['Mon-Fri 08:00-18:00', 'Sat 09:00-13:00'] },
        time: { between: ['22:00', '06:00'] },
        day_of_week: { in: ['Mon'] },
        ip_address: { not_in: ['10.20.0.0/16', '2001:db8:40::/48'] },
        timezone: 'Europe/Berlin',
      },
    });
    const { page, problems } = await stand.signIn({ look, path: '/console/policies' });
    await page.getByRole('row', { name: policyName }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await shoot(page, `policies ${name}`);
    await page.goto(`/console/policies/${policyName}`);
    await page.getByRole('link', { name: /^\d+ users?$/ }).waitFor();
    await addRequest(page, 'usr_', 'Chat history');
    await page.getByRole('button', { name: 'Simulate' }).click();
    await page.getByText('as before').waitFor();
    await page.getByRole('button', { name: 'Add a request' }).click();
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    await shoot(page, `policy ${name}`);
    await page.goto('/console/new-policy');
    await page.getByRole('button', { name: 'Create policy' }).waitFor();
    await page.getByRole('option').nth(3).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await shoot(page, `new policy ${name}`);
    expect(problems).toEqual([]);
  });
});

/** Adds a request of the first user or key that the search finds. */
async function addRequest(page: Page, who: string, request: string): Promise<void> {
  await page.getByRole('button', { name: 'Add a request' }).click();
  await page.getByRole('combobox', { name: 'User or key' }).fill(who === 'usr_' ? 'A person' : who);
  await page
    .getByRole('option', { name: who === 'usr_' ? 'A person' : who })
    .first()
    .click();
  await page.getByRole('button', { name: 'Request', exact: false }).and(page.locator('[aria-haspopup=listbox]')).last().click();
  await page.getByRole('option', { name: request, exact: true }).click();
  await page.getByRole('button', { name: 'Add', exact: true }).click();
}

async function drag(page: Page, from: Locator, ...via: readonly Locator[]): Promise<void> {
  await from.hover();
  await page.mouse.down();
  for (const place of via) await place.hover();
  await page.mouse.up();
}

const MAX_TABS = 120;

/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let pressed = 0; pressed < MAX_TABS; pressed++) {
    if (await hasFocus(target)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not reach ${target}`);
}

async function hasFocus(target: Locator): Promise<boolean> {
  return (await target.and(target.page().locator(':focus')).count()) > 0;
}

async function expectFocus(target: Locator): Promise<void> {
  await expect.poll(() => hasFocus(target)).toBe(true);
}

/** Pictures for whoever wants to look: in the folder that POSTERN_TEST_PICTURES names. */
async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env['POSTERN_TEST_PICTURES'];
  if (folder === undefined) return;
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: `${folder}/${name.replaceAll(' ', '-')}.png`, fullPage: true });
}
