import type { Locator } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done, makeKey, makeUser } from '../server/support/client.ts';
import { becomes } from '../server/support/eventually.ts';
import { applyLook, chooseOption, DESKTOP, faultsInEveryLook, PHONE, visit } from './support/browser.ts';
import { expectFocus, tabTo } from './support/keyboard.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });

/** Saves what is typed in a drawer, and closes it. */
async function save(drawer: Locator): Promise<void> {
  await drawer.getByRole('button', { name: 'Save' }).click();
  await drawer.getByText('Saved.', { exact: true }).waitFor();
  await drawer.page().keyboard.press('Escape');
}

/** Creates them one after the other: a slow machine refuses the last of many simultaneous requests. */
async function makeKeys(tenant: string, bodies: readonly object[]): Promise<Awaited<ReturnType<typeof done>>[]> {
  const made = [];
  for (const body of bodies) {
    const given = { description: 'one of many', scopes: ['models:read'], ...body };
    made.push(await done(http, 'POST', '/v1/iam/api-keys', { token: stand.token, tenant, body: given }));
  }
  return made;
}

/** Through Envoy, as a program would ask. */
async function models(key: string): Promise<number> {
  const answer = await fetch(`${stand.edge.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await answer.body?.cancel();
  return answer.status;
}

describe('a key', () => {
  it('made in the console is shown once, works at once through Envoy, and is refused at once after it is revoked there', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/keys' });
    await page.getByRole('button', { name: 'Create key' }).click();
    const drawer = page.getByRole('dialog', { name: 'Create key' });
    await drawer.getByRole('textbox', { name: 'Name' }).fill('made here');
    await drawer.getByRole('textbox', { name: 'Description' }).fill('tests the console');
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('models');
    await chooseOption(drawer.getByRole('option', { name: 'models:read' }));
    await drawer.getByRole('radio', { name: '30 days' }).click();
    await drawer.getByRole('button', { name: 'Create key' }).click();
    const shown = page.getByRole('alertdialog');
    const key = (await shown.getByText(/^psk_\S+$/).textContent()) ?? '';
    await shown.getByRole('button', { name: 'Copy key' }).click();
    await shown.getByText('Copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key);
    const saving = page.waitForEvent('download');
    await shown.getByRole('button', { name: 'Download .env' }).click();
    const stream = await (await saving).createReadStream();
    expect(Buffer.concat(await stream.toArray()).toString()).toContain(`OPENAI_API_KEY=${key}\n`);
    await page.keyboard.press('Escape');
    await shown.waitFor();
    expect(await models(key)).toBe(200);
    await shown.getByRole('button', { name: 'I have saved it' }).click();
    await shown.waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(key);

    await page.getByRole('row', { name: 'made here' }).click();
    await page.getByRole('dialog', { name: 'made here' }).getByRole('button', { name: 'Revoke' }).click();
    const question = page.getByRole('alertdialog');
    await question.getByText('stops working on all replicas within a second').waitFor();
    await question.getByText('Last use:').or(question.getByText('It was never used.')).waitFor();
    await question.getByRole('textbox').fill(key.slice(-4));
    await question.getByRole('button', { name: 'Revoke' }).click();
    await question.waitFor({ state: 'detached' });
    expect(await models(key)).toBe(401);
    const revoked = page.getByRole('dialog', { name: 'made here' });
    await revoked.getByText('Revoked').waitFor();
    await revoked.getByText('If it worked, a program with this key could see models.').waitFor();
    expect(problems).toEqual([]);
  });

  it('is made and revoked by the keyboard alone', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/keys' });
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Create key' }));
    await page.keyboard.press('Enter');
    const drawer = page.getByRole('dialog', { name: 'Create key' });
    await expectFocus(drawer.getByRole('textbox', { name: 'Name' }));
    const press = (key: string) => page.keyboard.press(key);
    await page.keyboard.type('without mouse');
    await press('Tab');
    await page.keyboard.type('without a pointer');
    await press('Tab');
    await page.keyboard.type('chat:read');
    await press('Tab');
    // A search that holds text has a button that clears it, which is no tab stop.
    await expect.poll(() => page.evaluate('document.activeElement?.getAttribute("role")')).toBe('option');
    await press('Space');
    await drawer.getByRole('button', { name: 'Remove chat:read' }).waitFor();
    await tabTo(page, drawer.getByRole('button', { name: 'Create key' }));
    await press('Enter');
    const shown = page.getByRole('alertdialog');
    await shown.getByText(/^psk_\S+$/).waitFor();
    await expectFocus(shown.getByRole('button', { name: 'Copy key' }));
    await press('Enter');
    await shown.getByText('Copied').waitFor();
    await tabTo(page, shown.getByRole('button', { name: 'I have saved it' }));
    await press('Enter');
    const row = page.getByRole('row', { name: 'without mouse' });
    await row.waitFor();
    await tabTo(page, page.getByRole('grid', { name: 'API keys' }).locator('*'));
    const focused = () => page.evaluate<string>('document.activeElement.closest("[role=row]").textContent');
    while (!(await focused()).startsWith('without mouse')) await press('ArrowDown');
    await press('Enter');
    const open = page.getByRole('dialog', { name: 'without mouse' });
    await tabTo(page, open.getByRole('button', { name: 'Revoke' }));
    await press('Enter');
    const question = page.getByRole('alertdialog');
    const wanted =
      (await question
        .getByText(/^Type .{4} to confirm$/)
        .first()
        .textContent()) ?? '';
    await expectFocus(question.getByRole('textbox'));
    await page.keyboard.type(wanted.slice(5, 9));
    await tabTo(page, question.getByRole('button', { name: 'Revoke' }));
    await press('Enter');
    await question.waitFor({ state: 'detached' });
    await open.getByText('Revoked').waitFor();
    expect(problems).toEqual([]);
  });

  it('is disabled and enabled apart from its revocation, and shows its recorded requests and their addresses', async () => {
    const { id, key } = await makeKey(http, stand.token, { scopes: ['models:read'] });
    expect(await models(key)).toBe(200);
    const recorded = `/v1/iam/decisions/recent?principal=${id}&outcome=allow`;
    await becomes('the allow recorded', 1, async () => Object((await manage('GET', recorded)).body['data']).length);
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${id}` });
    await page.getByRole('list', { name: 'Recorded allows' }).getByText('/v1/models').first().waitFor();
    await expect.poll(() => page.getByRole('list', { name: 'Used from' }).textContent()).toContain('127.0.0.1');
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Disable' }).click();
    await drawer.getByText('Disabled', { exact: true }).waitFor();
    expect(await models(key)).toBe(401);
    await drawer.getByRole('button', { name: 'Enable' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Enable' }).click();
    await drawer.getByRole('button', { name: 'Disable' }).waitFor();
    expect(await models(key)).toBe(200);
    expect(problems).toEqual([]);
  });

  it('that is rotated without grace gets a new secret, and the old one is refused at once', async () => {
    const { id, key } = await makeKey(http, stand.token, { scopes: ['models:read'] });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${id}` });
    await page.getByRole('button', { name: 'Rotate' }).click();
    const question = page.getByRole('alertdialog');
    await question.getByRole('radio', { name: 'Not at all' }).click();
    await question.getByText('refused at once').waitFor();
    await question.getByRole('button', { name: 'Rotate' }).click();
    const fresh =
      (await page
        .getByRole('alertdialog')
        .getByText(/^psk_\S+$/)
        .textContent()) ?? '';
    expect(fresh).not.toBe(key);
    expect([await models(key), await models(fresh)]).toEqual([401, 200]);
    expect(problems).toEqual([]);
  });

  it('that is rotated shows its new secret although Escape is pressed before the answer', async () => {
    await manage('POST', '/v1/iam/tenants', { id: 'turned', name: 'Turned' });
    await makeKeys('turned', [{ name: 'to turn', expires_in_days: 1 }]);
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=turned' });
    await page.getByRole('row', { name: 'to turn' }).click();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/v1/iam/api-keys/*/rotate', async (route) => {
      await released;
      await route.fallback();
    });
    const dialog = page.getByRole('alertdialog');
    await page.getByRole('button', { name: 'Rotate' }).click();
    const sent = page.waitForRequest('**/v1/iam/api-keys/*/rotate');
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await sent;
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'Cancel' }).click({ force: true });
    await page.goBack();
    const question = page.getByRole('alertdialog', { name: 'This is shown only once' });
    await question.getByRole('button', { name: 'Stay' }).click();
    release();
    await dialog.getByText(/^psk_\S+$/).waitFor();
    expect(problems).toEqual([]);
  });

  it('of a tenant that forbids keys without end is refused in place, and nothing typed is lost', async () => {
    await manage('POST', '/v1/iam/tenants', {
      id: 'ends',
      name: 'Ends',
      settings: { allow_keys_without_expiry: false },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=ends&open=new' });
    const drawer = page.getByRole('dialog', { name: 'Create key' });
    await drawer.getByRole('textbox', { name: 'Description' }).fill('for ever');
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('models:read');
    await chooseOption(drawer.getByRole('option', { name: 'models:read' }));
    await drawer.getByRole('radio', { name: 'Never' }).click();
    await drawer.getByRole('button', { name: 'Create key' }).click();
    // Before the answer, the form takes no input.
    await drawer.getByText('The tenant requires an expiry.').first().waitFor();
    expect(await drawer.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('for ever');
    await drawer.getByRole('radio', { name: '7 days' }).click();
    await drawer.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('row', { name: 'for ever' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the edit of a key', () => {
  it('sends only the changed members, with the ETag, and the drawer shows them', async () => {
    const { id } = await makeKey(http, stand.token, { scopes: ['models:read'] });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${id}` });
    const sent: { readonly ifMatch: string | undefined; readonly body: unknown }[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PUT')
        sent.push({ ifMatch: request.headers()['if-match'], body: request.postDataJSON() });
    });
    await page.getByRole('button', { name: 'Edit' }).click();
    const drawer = page.getByRole('dialog', { name: /^Edit/ });
    await drawer.getByRole('textbox', { name: 'Name' }).first().fill('edited');
    await drawer.getByRole('textbox', { name: 'Requests a minute' }).fill('60');
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('chat:write');
    await chooseOption(drawer.getByRole('option', { name: 'chat:write' }));
    await drawer.getByRole('radiogroup', { name: 'Which models' }).getByRole('radio', { name: 'Only these' }).click();
    await drawer.getByRole('textbox', { name: 'Names of models' }).fill('phi-*');
    await drawer.getByRole('button', { name: 'Add a pair' }).click();
    await drawer.getByRole('textbox', { name: 'Name 1' }).fill('team');
    await drawer.getByRole('textbox', { name: 'Value 1' }).fill('search');
    await drawer.getByRole('radio', { name: '7 days' }).click();
    await save(drawer);
    await page.getByRole('dialog', { name: 'edited' }).getByText('at most 60').waitFor();
    await page
      .getByText('A program with this key may see models and send chat and completion requests, only models phi-*.')
      .waitFor();
    expect(sent).toEqual([
      {
        ifMatch: expect.stringMatching(/^".+"$/),
        body: {
          name: 'edited',
          scopes: ['models:read', 'chat:write'],
          expires_in_days: 7,
          rate_limit_rpm: 60,
          resource_constraints: { models: ['phi-*'] },
          metadata: { team: 'search' },
        },
      },
    ]);
    expect((await manage('GET', `/v1/iam/api-keys/${id}`)).body).toMatchObject({
      name: 'edited',
      metadata: { team: 'search' },
    });

    await page.getByRole('button', { name: 'Edit' }).click();
    await drawer.getByRole('textbox', { name: 'Requests a minute' }).fill('');
    await drawer.getByRole('button', { name: 'Remove team' }).click();
    await save(drawer);
    await page.getByRole('dialog', { name: 'edited' }).getByText('no limit of its own').waitFor();
    expect(sent[1]?.body).toEqual({ rate_limit_rpm: null, metadata: {} });
    expect(problems).toEqual([]);
  });

  it('of its proof opens the key itself if a secret proves it', async () => {
    const { id } = await makeKey(http, stand.token, { scopes: ['models:read'] });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${id}&act=proof` });
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('without a change sends nothing', async () => {
    const { id } = await makeKey(http, stand.token, { scopes: ['models:read'] });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${id}&act=edit` });
    const written: string[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PUT') written.push(request.url());
    });
    const drawer = page.getByRole('dialog', { name: /^Edit/ });
    const save = drawer.getByRole('button', { name: 'Save' });
    await drawer.getByRole('textbox', { name: 'Name' }).first().fill('a');
    await expect.poll(() => save.getAttribute('aria-disabled')).toBe(null);
    await drawer.getByRole('textbox', { name: 'Name' }).first().fill('');
    await drawer.getByRole('button', { name: 'Add a pair' }).click();
    await expect.poll(() => save.getAttribute('aria-disabled')).toBe('true');
    await save.press('Enter');
    await drawer.getByRole('textbox', { name: 'Description' }).press('Enter');
    await drawer.getByRole('button', { name: 'Cancel' }).click();
    await drawer.waitFor({ state: 'detached' });
    expect([written, problems]).toEqual([[], []]);
  });

  it("after another caller's change keeps the input, shows that change, and continues from it", async () => {
    const { id } = await makeKey(http, stand.token, { scopes: ['models:read'] });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?open=${id}&act=edit` });
    const drawer = page.getByRole('dialog', { name: /^Edit/ });
    await drawer.getByRole('textbox', { name: 'Name' }).first().fill('mine');
    await manage('PUT', `/v1/iam/api-keys/${id}`, { metadata: { theirs: 'yes' } });
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('Somebody else saved a change after you opened this.').waitFor();
    expect(await drawer.getByRole('textbox', { name: 'Name' }).first().inputValue()).toBe('mine');
    await drawer.getByRole('button', { name: 'Continue with the newest' }).click();
    await expect.poll(() => drawer.getByRole('textbox', { name: 'Value 1' }).inputValue()).toBe('yes');
    await save(drawer);
    await page.getByRole('dialog', { name: 'mine' }).waitFor();
    expect((await manage('GET', `/v1/iam/api-keys/${id}`)).body).toMatchObject({
      name: 'mine',
      metadata: { theirs: 'yes' },
    });
    expect(problems).toEqual([]);
  });

  it('beyond what the caller may do is rejected in place, and the input stays', async () => {
    const person = await makeUser(http, stand.token, { roles: ['developer'] });
    const { id } = await makeKey(http, stand.token, { owner: person.id, scopes: ['chat:write'] });
    const { page, problems } = await stand.signIn({ person, path: `/console/keys?open=${id}&act=edit` });
    const drawer = page.getByRole('dialog', { name: /^Edit/ });
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('admin:keys');
    await chooseOption(drawer.getByRole('option', { name: 'admin:keys' }));
    await drawer.getByRole('button', { name: 'Save' }).click();
    await drawer.getByRole('status').filter({ hasText: 'admin:keys' }).first().waitFor();
    await drawer.getByRole('button', { name: 'Remove admin:keys' }).waitFor();
    expect((await manage('GET', `/v1/iam/api-keys/${id}`)).body).toMatchObject({ scopes: ['chat:write'] });
    expect(problems).toEqual([]);
  });
});

describe('the budgets of keys', () => {
  it("are beside the list and in the drawer: the key's rate limit, the tenant's, and the tokens of the month with their reset", async () => {
    const tenant = 'budgets';
    await manage('POST', '/v1/iam/tenants', {
      id: tenant,
      name: 'Budgets',
      settings: { rate_limit_rpm: 500 },
      quotas: { monthly_tokens: 1_000_000 },
    });
    await manage('PUT', `/v1/iam/tenants/${tenant}/usage`, { monthly_tokens_used: 250_000 });
    const body = {
      name: 'limited',
      description: 'A test',
      scopes: ['chat:write'],
      expires_in_days: 9,
      rate_limit_rpm: 60,
    };
    await done(http, 'POST', '/v1/iam/api-keys', { token: stand.token, tenant, body });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?tenant=${tenant}` });
    await page.getByText('250K of 1M').waitFor();
    const row = page.getByRole('row', { name: 'limited' });
    await row.getByText('at most 60 a minute').waitFor();
    await row.click();
    const drawer = page.getByRole('dialog', { name: 'limited' });
    await drawer.getByText('at most 60', { exact: true }).waitFor();
    await drawer.getByText('at most 500').waitFor();
    await drawer.getByText('250K of 1M').waitFor();
    await drawer.getByText(/750K left, resets in \d+/).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the list of keys', () => {
  it('is searched and filtered by the server, by text, prefix, owner and state', async () => {
    await manage('POST', '/v1/iam/tenants', { id: 'many', name: 'Many' });
    const owner = await makeUser(http, stand.token, { tenant: 'many', roles: ['developer'] });
    const made = await makeKeys(
      'many',
      Array.from({ length: 60 }, (_, i) => ({
        name: `crowd ${i}`,
        ...(i === 7 ? { user_id: owner.id, expires_in_days: 3 } : { expires_in_days: 90 }),
      })),
    );
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=many' });
    const rows = page.getByRole('row', { name: /^crowd/ });
    await rows.first().waitFor();
    expect(await rows.count()).toBe(50);
    await page.getByText('1–50 of 60').waitFor();
    await page.getByRole('button', { name: 'Show more' }).click();
    await expect.poll(() => rows.count()).toBe(60);
    await page.getByText('1–60 of 60').waitFor();
    await page.getByRole('searchbox', { name: 'Search keys' }).fill('crowd 31');
    await expect.poll(() => rows.count()).toBe(1);
    await page.getByRole('searchbox', { name: 'Search keys' }).fill(String(made[12]?.body['prefix']));
    await page.getByRole('row', { name: 'crowd 12' }).waitFor();
    await page.getByRole('searchbox', { name: 'Search keys' }).fill('');
    await page.getByRole('radio', { name: 'Expiring soon' }).click();
    await expect.poll(() => rows.count()).toBe(1);
    await visit(page, `/console/keys?tenant=many&user=${owner.id}`);
    await expect.poll(() => rows.count()).toBe(1);
    expect(problems).toEqual([]);
  });

  it('is newest first, sorted by its heads, and all keys that match are revoked, also those that are not loaded', async () => {
    await manage('POST', '/v1/iam/tenants', {
      id: 'heads',
      name: 'Heads',
      settings: { allow_keys_without_expiry: true },
    });
    await makeKeys(
      'heads',
      Array.from({ length: 52 }, (_, i) => ({
        name: `head ${String(i).padStart(2, '0')}`,
        ...(i < 2 ? { expires_at: null } : { expires_in_days: 90 }),
      })),
    );
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=heads' });
    const rows = page.getByRole('row', { name: /^head/ });
    const first = () => rows.first().textContent();
    await expect.poll(first).toContain('head 51');
    await page.getByRole('columnheader', { name: 'Name' }).click();
    await expect.poll(first).toContain('head 00');
    expect(new URL(page.url()).searchParams.get('sort')).toBe('name');
    await page.getByRole('columnheader', { name: 'Name' }).click();
    await expect.poll(first).toContain('head 51');
    await page.mouse.wheel(0, 2000);
    await expect.poll(() => page.getByRole('columnheader', { name: 'Name' }).isVisible()).toBe(true);
    expect((await page.getByRole('columnheader', { name: 'Name' }).boundingBox())?.y).toBeGreaterThanOrEqual(0);
    await visit(page, '/console/keys?tenant=heads&care=without-expiry');
    await expect.poll(() => rows.count()).toBe(2);
    await visit(page, '/console/keys?tenant=heads&status=active');
    await page.getByText('1–50 of 52').waitFor();
    await page.getByRole('columnheader').first().locator('label').click();
    await page.getByRole('button', { name: 'Select all 52 that match' }).click();
    await page.getByRole('button', { name: 'Revoke all 52 keys' }).click();
    const question = page.getByRole('alertdialog');
    await question.getByText('will be revoked').first().waitFor();
    await question.getByRole('button', { name: 'Revoke all 52 keys' }).click();
    await question.waitFor({ state: 'detached' });
    await page.getByText('No key matches').waitFor();

    // Those of every status, or none if all are revoked already.
    const [active, disabled, expired] = await makeKeys('heads', [
      { name: 'head a' },
      { name: 'head d' },
      { name: 'head e' },
    ]);
    const idOf = (made: typeof active): string => String(made?.body['id']);
    await done(http, 'POST', `/v1/iam/api-keys/${idOf(disabled)}/disable`, { token: stand.token, tenant: 'heads' });
    await stand.db
      .knex('api_keys')
      .where({ id: idOf(expired) })
      .update({ expires_at: new Date(Date.now() - 60_000) });
    await visit(page, '/console/keys?tenant=heads&status=revoked');
    await page.getByText('1–50 of 52').waitFor();
    await page.getByRole('columnheader').first().locator('label').click();
    await page.getByText('50 keys selected').waitFor();
    expect(await page.getByRole('button', { name: 'Select all 52 that match' }).count()).toBe(0);
    await visit(page, '/console/keys?tenant=heads');
    await page.getByText('1–50 of 55').waitFor();
    await page.getByRole('columnheader').first().locator('label').click();
    await page.getByRole('button', { name: 'Select all 55 that match' }).click();
    await page.getByRole('button', { name: 'Revoke all 55 keys' }).click();
    await expect.poll(() => question.getByText('will be revoked').count()).toBe(3);
    await question.getByRole('button', { name: 'Revoke all 3 keys' }).click();
    await question.waitFor({ state: 'detached' });
    for (const made of [active, disabled, expired]) {
      const read = await done(http, 'GET', `/v1/iam/api-keys/${idOf(made)}`, { token: stand.token, tenant: 'heads' });
      expect(read.body['status']).toBe('revoked');
    }
    expect(problems).toEqual([]);
  });

  it('finds keys that are wider than their use, and a key shows the permissions that it has not used', async () => {
    await manage('POST', '/v1/iam/tenants', { id: 'wide', name: 'Wide' });
    const ids = await Promise.all(
      ['narrow', 'wide'].map(async (name) => {
        const scopes = name === 'narrow' ? ['models:read'] : ['models:read', 'chat:*'];
        const body = { name: `${name} key`, description: 'k', scopes, expires_in_days: 90 };
        return String(
          (await done(http, 'POST', '/v1/iam/api-keys', { token: stand.token, tenant: 'wide', body })).body['id'],
        );
      }),
    );
    await stand.db
      .knex('api_keys')
      .whereIn('id', ids)
      .update({ created_at: new Date(Date.now() - 31 * 86_400_000) });
    await stand.db.knex('key_permissions_used').insert(
      ids.map((key_id) => ({
        key_id,
        permission: 'models:read',
        last_used_on: new Date().toISOString().slice(0, 10),
      })),
    );
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=wide&care=wider-than-used' });
    await page.getByRole('row', { name: /^wide key/ }).waitFor();
    expect(await page.getByRole('row', { name: /^narrow key/ }).count()).toBe(0);
    await page.getByRole('row', { name: /^wide key/ }).click();
    const section = page
      .getByRole('dialog', { name: 'wide key' })
      .locator('section', { hasText: 'Permissions without a use' });
    for (const name of ['chat:read', 'chat:write']) await section.getByText(name, { exact: true }).waitFor();
    expect(await section.getByText('models:read', { exact: true }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('shows what would happen before several keys are revoked together', async () => {
    await manage('POST', '/v1/iam/tenants', { id: 'several', name: 'Several' });
    for (const name of ['first', 'second', 'third']) {
      await done(http, 'POST', '/v1/iam/api-keys', {
        token: stand.token,
        tenant: 'several',
        body: { name, description: 'to be revoked', scopes: ['models:read'], expires_in_days: 1 },
      });
    }
    const { page, problems } = await stand.asAdmin({ path: '/console/keys?tenant=several' });
    for (const name of ['first', 'second']) {
      await page.getByRole('row', { name }).locator('label').click();
    }
    await page.getByText('2 keys selected').waitFor();
    await page.getByRole('button', { name: 'Revoke 2 keys' }).click();
    const question = page.getByRole('alertdialog');
    await expect.poll(() => question.getByText('will be revoked').count()).toBe(2);
    await question.getByRole('button', { name: 'Revoke 2 keys' }).click();
    await question.waitFor({ state: 'detached' });
    await page.getByRole('radio', { name: 'Active' }).click();
    await page.getByRole('row', { name: 'third' }).waitFor();
    await expect.poll(() => page.getByRole('row', { name: 'first' }).count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it('of a person without admin:keys holds its own keys, and selects none', async () => {
    const person = await makeUser(http, stand.token, { roles: ['developer'] });
    await makeKey(http, stand.token, { owner: person.id, scopes: ['models:read'] });
    const { page, problems } = await stand.signIn({
      person,
      path: '/console/keys',
    });
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    expect(await page.getByRole('checkbox').count()).toBe(0);
    expect(problems).toEqual([]);
  });
});

describe('the screens of keys', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    const { id, key } = await makeKey(http, stand.token, { scopes: ['chat:*', 'models:read'] });
    const prefix = key.slice(0, 8);
    const { page, problems } = await stand.asAdmin({ path: '/console/keys' });
    await page.getByRole('row').nth(1).waitFor();
    for (const look of [DESKTOP, PHONE]) {
      await applyLook(page, look);
      const align = "getComputedStyle(document.querySelector('tbody [role=rowheader]')).textAlign";
      expect(await page.evaluate(align)).toMatch(/^(?:left|start)$/);
    }
    // On the phone, the states that the list is filtered by are all in sight.
    const hidden =
      "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('main [role=radiogroup]'))";
    expect(await page.evaluate(hidden)).toBe(0);
    expect(await faultsInEveryLook(page)).toEqual([]);
    // Behind the drawers, the list has one row.
    await visit(page, `/console/keys?q=${prefix}&open=new`);
    await page.getByRole('dialog', { name: 'Create key' }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await visit(page, `/console/keys?q=${prefix}&open=${id}`);
    await applyLook(page, PHONE);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByRole('button', { name: 'Add a pair' }).click();
    await page.getByRole('textbox', { name: 'Value 1' }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await applyLook(page, PHONE);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText('at most', { exact: false }).or(page.getByText('no limit of its own')).first().waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await applyLook(page, PHONE);
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByRole('alertdialog').waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await applyLook(page, PHONE);
    await page.getByRole('alertdialog').getByRole('button', { name: 'Rotate' }).click();
    const saved = page.getByRole('button', { name: 'I have saved it' });
    await saved.waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    expect(await saved.isVisible()).toBe(true);
    expect(problems).toEqual([]);
  });
});
