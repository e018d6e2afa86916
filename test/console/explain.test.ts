import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { call, done, type MadeUser, makeKey, makeUser } from '../server/support/client.ts';
import { accessibilityFaults, chooseOption, faultsInEveryLook, PHONE, visit } from './support/browser.ts';
import { developerKey, shoot } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let developer: MadeUser;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  const role = { name: 'day-shift', permissions: ['chat:read'] };
  await done(stand.server.http, 'POST', '/v1/iam/roles', { token: stand.token, body: role });
  developer = await makeUser(stand.server.http, stand.token, { roles: ['developer', role.name] });
  await done(stand.server.http, 'POST', '/v1/iam/policies', {
    token: stand.token,
    body: {
      name: 'office-hours',
      effect: 'deny',
      actions: ['embeddings:*'],
      resources: ['*'],
      conditions: {
        time: { not_between: ['08:00', '18:00'] },
        ip_address: { not_in: ['10.0.0.0/8'] },
        timezone: 'Europe/Berlin',
      },
      attached_roles: [role.name],
    },
  });
});

/** The address of a question. */
function addressOf(question: Readonly<Record<string, string>>): string {
  return `/console/explain?${new URLSearchParams(question)}`;
}

const night = (user: string) =>
  addressOf({
    user,
    method: 'POST',
    path: '/v1/embeddings',
    model: 'embed-1',
    address: '203.0.113.9',
    time: '2026-11-19T22:30:00Z',
  });

describe('an explanation', () => {
  it('of a link by an email address shows the address whole, in the form and in the sentence', async () => {
    const search = new URLSearchParams({ user: developer.email, path: '/v1/chat/completions', model: 'gpt-4.1' });
    const { page, problems } = await stand.asAdmin({ path: `/console/explain?${search}` });
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain(`${developer.email} may use chat:write by developer.`);
    expect(await page.getByRole('combobox', { name: 'User' }).inputValue()).toBe(developer.email);
    expect(problems).toEqual([]);
  });

  it('is requested by a form that finds its user at the server, and shows an allow as an open arch at step 18', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/explain' });
    await page.getByRole('combobox', { name: 'User' }).fill(developer.email);
    await chooseOption(page.getByRole('option', { name: new RegExp(`A person.*${developer.email}`) }));
    const path = page.getByRole('combobox', { name: 'Path' });
    // Tab takes the option that lies under the pointer.
    await page.mouse.move(0, 0);
    await path.fill('/v1/chat/completions');
    await path.press('Tab');
    await page.getByRole('textbox', { name: 'Model' }).fill('gpt-4.1');
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Allowed. A person may use chat:write by developer.');
    expect(await verdict.textContent()).toContain('200 allow · decided at step 18 of 18');
    const steps = page.getByRole('list', { name: 'The steps of the decision' }).getByRole('listitem');
    await expect.poll(() => steps.filter({ hasText: 'body' }).textContent()).toContain('models/gpt-4.1');
    expect(await steps.last().textContent()).toContain('decides');
    const asked = new URL(page.url()).searchParams;
    expect([asked.get('user'), asked.get('path'), asked.get('model')]).toEqual([
      developer.id,
      '/v1/chat/completions',
      'gpt-4.1',
    ]);
    expect(problems).toEqual([]);
  });

  it('of a denial by a policy shows each condition with what it was compared with, and leads to the policy', async () => {
    const { page, problems } = await stand.asAdmin({ path: night(developer.id) });
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Denied by the policy office-hours.');
    await expect
      .poll(() => verdict.textContent())
      .toContain('A person may otherwise use embeddings:write by developer.');
    expect(await verdict.textContent()).toContain('403 denied_by_policy · decided at step 12 of 18');
    const steps = page.getByRole('list', { name: 'The steps of the decision' }).getByRole('listitem');
    const deciding = await steps.filter({ hasText: 'decides' }).textContent();
    expect(deciding).toContain('time23:30 in Europe/Berlin is not between 08:00–18:00');
    expect(deciding).toContain('ip_address203.0.113.9 is not in 10.0.0.0/8');
    expect(await steps.last().textContent()).toContain('13–18not evaluatedpermission, resources');
    await page.getByRole('link', { name: 'Open policy' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/policies/office-hours');
    await page.goBack();
    await page.getByRole('list', { name: 'The steps of the decision' }).getByRole('link', { name: 'A person' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/users/${developer.id}`);
    expect(problems).toEqual([]);
  });

  it("of a missing permission names the permission, each role's permissions, and the resource to change", async () => {
    const { page, problems } = await stand.asAdmin({
      path: addressOf({ user: developer.id, method: 'POST', path: '/v1/models' }),
    });
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('Denied. A person has nothing that gives models:write.');
    const deciding = page.getByRole('listitem').filter({ hasText: 'decides' });
    expect(await deciding.textContent()).toContain('does not give it');
    await deciding.getByRole('link', { name: 'developer' }).waitFor();
    await page.getByText('A role, or an allow policy attached to one, must give models:write.').waitFor();
    await page.getByRole('link', { name: 'Open user' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/users/${developer.id}`);
    expect(problems).toEqual([]);
  });

  it('of a key names its scopes, and leads to the key', async () => {
    const { id } = await makeKey(stand.server.http, stand.token, { scopes: ['chat:read'] });
    const name = { name: 'explained' };
    await done(stand.server.http, 'PUT', `/v1/iam/api-keys/${id}`, { token: stand.token, body: name });
    const { page, problems } = await stand.asAdmin({ path: '/console/explain' });
    await page.getByRole('radio', { name: 'API key' }).click();
    await page.getByRole('combobox', { name: 'API key' }).click();
    await page.getByRole('combobox', { name: 'API key' }).fill('explained');
    await chooseOption(page.getByRole('option', { name: /^explained/ }));
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText("The key's scopes must cover chat:write.").waitFor();
    expect(new URL(page.url()).searchParams.get('key')).toBe(id);
    expect(await page.getByRole('link', { name: 'Open key' }).getAttribute('href')).toBe(
      `/console/keys?open=${id}&tenant=default`,
    );
    expect(problems).toEqual([]);
  });

  it('is given to people without admin:policies about themselves', async () => {
    const { page, problems } = await stand.signIn({ person: developer, path: '/console/explain' });
    await page.getByText('you may ask about yourself.').waitFor();
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText('403').or(page.getByText('200 allow')).first().waitFor();
    expect(new URL(page.url()).searchParams.get('user')).toBe(developer.id);
    expect(problems).toEqual([]);
  });
});

describe('a question that is being typed', () => {
  it('stays in the form when the page reads the account of the user again', async () => {
    const { page, problems } = await stand.signIn({ path: '/console/explain' });
    await page.clock.install();
    await visit(page, '/console/explain');
    const model = page.getByRole('textbox', { name: 'Model' });
    await model.fill('half-typed');
    await page.route('**/v1/auth/me', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), name: 'Read again' } });
    });
    await page.clock.fastForward(61_000);
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange', { bubbles: true }))");
    await page.getByText('Read again').waitFor();
    expect(await model.inputValue()).toBe('half-typed');
    await page.clock.setSystemTime(Date.now());
    expect(problems).toEqual([]);
  });
});

/** Sends a request through Envoy and returns the status with the request id of the answer. */
async function refused(key: string, method: string, path: string, body?: object) {
  const answer = await fetch(`${stand.edge.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  await answer.text();
  return { status: answer.status, id: answer.headers.get('x-request-id') ?? '' };
}

/** Waits until the decision of a request can be read. */
async function recorded(id: string, tenant?: string): Promise<void> {
  const read = () =>
    call(stand.server.http, 'GET', `/v1/iam/decisions/recent/${id}?tenant_id=*`, { token: stand.token });
  await expect.poll(async () => (await read()).body['tenant_id']).toBe(tenant ?? null);
}

async function paste(page: Page, id: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Request id' }).fill(id);
  await page.getByRole('button', { name: 'Open', exact: true }).click();
}

describe('the explanation of a denial through Envoy', () => {
  it('opens by its request id, fills the form with the request, and shows the recorded decision', async () => {
    const { id: keyId, key } = await makeKey(stand.server.http, stand.token, { owner: developer.id, scopes: ['*'] });
    const { status, id } = await refused(key, 'POST', '/v1/models', { id: 'mine' });
    expect(status).toBe(403);
    await recorded(id, 'default');
    const { page, problems } = await stand.asAdmin({ path: '/console/explain' });
    await paste(page, id);
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain('has nothing that gives models:write.');
    expect(await verdict.textContent()).toContain('403 insufficient_permission · decided at step 13 of 18');
    await page.getByText('As it was recorded').waitFor();
    await page.getByText('POST /v1/models', { exact: true }).first().waitFor();
    expect(new URL(page.url()).searchParams.get('request_id')).toBe(id);
    await expect.poll(() => page.getByRole('combobox', { name: 'Path' }).inputValue()).toBe('/v1/models');
    expect(await page.getByRole('textbox', { name: 'Address' }).inputValue()).toBe('127.0.0.1');
    // The owner's roles lack it, and the key's scopes do not.
    await page
      .getByText("A role of the key's owner, or an allow policy attached to one, must give models:write.")
      .waitFor();
    expect(await page.getByRole('link', { name: 'Open user' }).getAttribute('href')).toContain(
      `/console/users/${developer.id}`,
    );
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('key')).toBe(keyId);
    expect(new URL(page.url()).searchParams.get('request_id')).toBeNull();
    await verdict.waitFor();
    expect(problems).toEqual([]);
  });

  it('leads with the recorded reason, and the verdict of the current rules stands beside it', async () => {
    const http = stand.server.http;
    const { id: keyId, key } = await makeKey(http, stand.token, { scopes: ['chat:read'] });
    const { id } = await refused(key, 'GET', '/v1/models');
    await recorded(id, 'default');
    const { page, problems } = await stand.asAdmin({ path: `/console/explain?request_id=${id}` });
    const verdict = page.getByRole('status').filter({ hasText: 'insufficient_permission' });
    const today = page.locator('section', { has: page.getByRole('heading', { name: 'By the rules of today' }) });
    await expect.poll(() => verdict.textContent()).toContain('Denied.');
    await expect.poll(() => today.textContent()).toContain('The same.');
    await done(http, 'PUT', `/v1/iam/api-keys/${keyId}`, { token: stand.token, body: { scopes: ['models:read'] } });
    await page.reload();
    await expect.poll(() => today.textContent()).toContain('Allowed.');
    expect(await today.textContent()).toContain('200 allow · decided at step 18 of 18');
    expect(await verdict.textContent()).toMatch(/^Denied\..*models:read.*insufficient_permission · /);
    expect(problems).toEqual([]);
  });

  it('says that no decision is recorded under an unknown id', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/explain' });
    await paste(page, 'req_01KAJ2X8ZZZZZZZZZZZZZZZZZZ');
    await page.getByText('No decision of this id is recorded here').waitFor();
    await paste(page, 'not an id');
    await page.getByText('No decision of this id is recorded here').waitFor();
    expect(problems).toEqual([]);
  });

  it("shows nothing of another tenant's decision, and leads platform administrators to that tenant", async () => {
    const http = stand.server.http;
    for (const id of ['ours', 'theirs'])
      await done(http, 'POST', '/v1/iam/tenants', { token: stand.token, body: { id, name: id } });
    const { key } = await makeKey(http, stand.token, { tenant: 'theirs', scopes: ['chat:read'] });
    const { id } = await refused(key, 'GET', '/v1/models');
    await recorded(id, 'theirs');
    const person = await makeUser(http, stand.token, { roles: ['tenant-admin'], tenant: 'ours' });
    const ours = await stand.signIn({ person, path: '/console/explain' });
    await paste(ours.page, id);
    await ours.page.getByText('No decision of this id is recorded here').waitFor();
    expect(await ours.page.content()).not.toContain('/v1/models');
    expect(ours.problems).toEqual([]);
    const { page, problems } = await stand.asAdmin({ path: `/console/explain?request_id=${id}` });
    await page.getByText('This decision belongs to the tenant theirs.').waitFor();
    await page.getByRole('link', { name: 'Open it there' }).click();
    await page.getByText("The key's scopes must cover models:read.").waitFor();
    expect(new URL(page.url()).searchParams.get('tenant')).toBe('theirs');
    expect(problems).toEqual([]);
  });

  it('shows platform administrators the step that denies a credential without a principal', async () => {
    const { id } = await refused(`psk_${'x'.repeat(50)}`, 'GET', '/v1/models');
    await recorded(id);
    const { page, problems } = await stand.asAdmin({ path: `/console/explain?request_id=${id}` });
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect
      .poll(() => verdict.textContent())
      .toMatch(/Denied.*401 invalid_credential · decided at step [68] of 18/);
    await page.getByText('Denied · invalid_credential').waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the explanation of a credential or a limit', () => {
  it('says that the key was revoked, since when, and that it never works again', async () => {
    const { id } = await makeKey(stand.server.http, stand.token, { owner: developer.id, scopes: ['chat:read'] });
    await done(stand.server.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: stand.token });
    const { page, problems } = await stand.asAdmin({ path: addressOf({ key: id, method: 'GET', path: '/v1/models' }) });
    const deciding = page.getByRole('listitem').filter({ hasText: 'decides' });
    await expect.poll(() => deciding.textContent()).toContain('The key was revoked.');
    expect(await deciding.textContent()).toContain('since');
    expect(await deciding.getByRole('link', { name: 'A person' }).getAttribute('href')).toContain(developer.id);
    await page.getByText('A revoked key never works again: create another one.').waitFor();
    expect(problems).toEqual([]);
  });

  it('names the state of each limit of steps 15 to 17, and ends at the one that is used up', async () => {
    const http = stand.server.http;
    await done(http, 'POST', '/v1/iam/tenants', {
      token: stand.token,
      body: {
        id: 'limited',
        name: 'Limited',
        settings: { rate_limit_rpm: 600, max_tokens_per_request: 4096 },
        quotas: { monthly_tokens: 1_000_000 },
      },
    });
    const { id } = await makeKey(http, stand.token, { tenant: 'limited', scopes: ['chat:*'] });
    await done(http, 'PUT', `/v1/iam/api-keys/${id}`, {
      token: stand.token,
      tenant: 'limited',
      body: { rate_limit_rpm: 60 },
    });
    const path = `${addressOf({ key: id, method: 'POST', path: '/v1/chat/completions', model: 'llama-3' })}&tenant=limited`;
    const { page, problems } = await stand.asAdmin({ path });
    const steps = page.getByRole('list', { name: 'The steps of the decision' }).getByRole('listitem');
    const step = (name: string) => steps.filter({ hasText: name }).first();
    await expect
      .poll(() => step('rate limit').textContent())
      .toMatch(/requests a minute0 of 600 used, 600 left, this request takes 1, resets/);
    expect(await step('rate limit').textContent()).toMatch(/requests a minute, this key0 of 60 used, 60 left/);
    expect(await step('token limit').textContent()).toContain('tokens a requestat most 4,096');
    expect(await step('quota').textContent()).toMatch(
      /tokens a month0 of 1,000,000 used, 1,000,000 left, this request takes [\d,]+, resets/,
    );
    expect(await step('quota').textContent()).toContain('collectionsno limit');
    expect(await steps.last().textContent()).toContain('decides');

    await done(http, 'PUT', '/v1/iam/tenants/limited', {
      token: stand.token,
      body: { quotas: { monthly_tokens: 10 } },
    });
    await page.reload();
    const verdict = page.getByRole('status').filter({ hasText: 'decided at step' });
    await expect.poll(() => verdict.textContent()).toContain("but the tenant's limit of tokens a month is used up.");
    expect(await verdict.textContent()).toContain('429 insufficient_quota · decided at step 17 of 18');
    await page.getByText(/^Wait until .+: the tenant's limit of tokens a month is reset then\.$/).waitFor();
    await page.getByText("Raise the tenant's limit of tokens a month.").waitFor();
    expect(await page.getByRole('link', { name: 'Open tenant' }).getAttribute('href')).toContain('open=limited');
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(problems).toEqual([]);
  });
});

describe('the access review', () => {
  it('lists the roles, users and keys that can use a model with the rule, in the address and as CSV', async () => {
    const http = stand.server.http;
    const role = {
      name: 'llama-users',
      permissions: ['chat:write'],
      resource_constraints: { models: ['llama-*'] },
    };
    await done(http, 'POST', '/v1/iam/roles', { token: stand.token, body: role });
    const readers = { ...role, name: 'llama-readers', permissions: ['chat:write', 'chat:read'] };
    await done(http, 'POST', '/v1/iam/roles', { token: stand.token, body: readers });
    const reading = {
      name: 'llama-reading',
      effect: 'deny',
      actions: ['chat:read'],
      resources: ['*'],
      conditions: { weekly_hours: { in: ['Sat-Sun 00:00-24:00'] } },
      applies_to: 'roles',
      attached_roles: [readers.name],
    };
    await done(http, 'POST', '/v1/iam/policies', { token: stand.token, body: reading });
    const user = await makeUser(http, stand.token, { roles: [role.name] });
    await done(http, 'PUT', `/v1/iam/users/${user.id}`, { token: stand.token, body: { name: 'Lena Lindqvist' } });
    const { id: key } = await makeKey(http, stand.token, { owner: user.id, scopes: ['chat:*'] });
    await done(http, 'PUT', `/v1/iam/api-keys/${key}`, { token: stand.token, body: { description: 'Llama job' } });
    const { page, problems } = await stand.asAdmin({ path: '/console/explain' });
    await page.getByRole('link', { name: 'Access review' }).click();
    await page.getByText('Who can use it?').waitFor();
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.fill('llama-3');
    const rows = page.getByRole('row');
    const ofRole = rows.filter({ hasText: 'llama-users' });
    await ofRole.filter({ hasText: 'Role' }).waitFor();
    // The tenant has the users of other tests as well.
    const shown = async (text: string) => {
      const row = rows.filter({ hasText: text });
      const more = page.getByRole('button', { name: 'Show more' });
      await expect
        .poll(async () => {
          if ((await row.count()) === 0 && (await more.count()) > 0) await more.click();
          return row.count();
        })
        .toBe(1);
      return row.textContent();
    };
    expect(await shown('Lena Lindqvist')).toMatch(/User.*always.*llama-users.*chat:write/);
    expect(await shown('llama-readers')).toContain('partly under conditions of llama-reading');
    expect(await shown('Llama job')).toMatch(/API key.*always.*chat:write/);
    expect(new URL(page.url()).searchParams.get('name')).toBe('llama-3');
    expect(await faultsInEveryLook(page)).toEqual([]);
    await shoot(page, 'access review');
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as CSV' }).click();
    const lines = await readFile(await (await download).path(), 'utf8');
    expect(lines).toContain(user.email);
    expect(lines).toContain('Llama job');

    await name.fill('gpt-4.1');
    await expect.poll(() => rows.filter({ hasText: 'Lena Lindqvist' }).count()).toBe(0);
    await page.getByRole('combobox', { name: 'Permission' }).fill('chat:w');
    await chooseOption(page.getByRole('option', { name: 'chat:write' }));
    await expect.poll(() => new URL(page.url()).searchParams.get('permission')).toBe('chat:write');
    await rows.filter({ hasText: 'developer' }).first().waitFor();
    await shown(developer.email);
    await rows.filter({ hasText: developer.email }).first().click();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/users/${developer.id}`);
    expect(problems).toEqual([]);
  });

  it('puts no pasted key into the address, and says what to do when no principal has access', async () => {
    await done(stand.server.http, 'POST', '/v1/iam/policies', {
      token: stand.token,
      body: { name: 'no-retired', effect: 'deny', actions: ['*'], resources: ['models/retired-*'] },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/access' });
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.fill('retired-1');
    await page.getByText('No role, user or key has access').waitFor();
    const addresses: string[] = [];
    page.on('request', (request) => addresses.push(request.url()));
    await name.fill(`psk_${'x'.repeat(50)}`);
    await page.getByText('Who can use it?').waitFor();
    expect([...addresses, page.url()].filter((address) => address.includes('xxxx'))).toEqual([]);
    await name.fill('retired-1');
    await page.getByText('No role, user or key has access').waitFor();
    await page.getByRole('link', { name: 'Open roles' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/roles');
    expect(problems).toEqual([]);
  });
});

it('on phones the question folds to one line after the answer, and opens again', async () => {
  const { page, problems } = await stand.asAdmin({ look: PHONE, path: night(developer.id) });
  await page.getByRole('button', { name: 'Change the question' }).click();
  await page.getByRole('textbox', { name: 'Model' }).fill('embed-2');
  await page.getByRole('button', { name: 'Explain', exact: true }).click();
  await page.getByRole('button', { name: 'Change the question' }).waitFor();
  expect(await page.getByRole('textbox', { name: 'Model' }).isVisible()).toBe(false);
  expect(problems).toEqual([]);
});

it('on phones a request id shows its outcome on the first screen, and the form only on request', async () => {
  const { key } = await makeKey(stand.server.http, stand.token, { scopes: ['chat:read'] });
  const { id } = await refused(key, 'GET', '/v1/models');
  await recorded(id, 'default');
  const { page, problems } = await stand.asAdmin({ look: PHONE, path: '/console/explain' });
  await paste(page, id);
  const verdict = page.getByText('403 insufficient_permission · decided at step 13 of 18');
  await verdict.waitFor();
  expect((await verdict.boundingBox())?.y).toBeLessThan(PHONE.height ?? 0);
  expect(await page.getByRole('textbox', { name: 'Request id' }).isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Change the question' }).click();
  await page.getByRole('textbox', { name: 'Request id' }).waitFor();
  expect(problems).toEqual([]);
});

it('an explanation has no serious accessibility fault, allowed, denied or recorded, in both themes, on desktops and phones', async () => {
  const { page, problems } = await stand.asAdmin({ path: night(developer.id) });
  await page.getByText('403 denied_by_policy').waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  await shoot(page, 'explain denied');
  await visit(page, addressOf({ user: developer.id, method: 'GET', path: '/v1/chat/history' }));
  await page.getByText('200 allow').waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  await shoot(page, 'explain allowed');
  const { key } = await developerKey(stand);
  const { id } = await refused(key, 'GET', '/v1/rag/collections');
  await recorded(id, 'default');
  await visit(page, `/console/explain?request_id=${id}`);
  await page.getByText('As it was recorded').waitFor();
  expect(await faultsInEveryLook(page)).toEqual([]);
  await shoot(page, 'explain recorded');
  expect(problems).toEqual([]);
});
