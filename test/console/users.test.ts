import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { ADMIN, call, done, login, type MadeUser, makeUser, type Person, tryLogin } from '../server/support/client.ts';
import { accessibilityFaults, chooseOption, faultsInEveryLook, type Tab, visit } from './support/browser.ts';
import { type ConsoleStand, enter, it } from './support/stand.ts';

/** As many as lock an account; the address may fail more often. */
const FAILURES = 10;
const PASSWORD = 'a sentence that is easy to remember';
const BYSTANDER = `select role_names, status from users where name = 'Bystander'`;

let stand: ConsoleStand;
let http: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });

async function named(name: string, roles: readonly string[] = ['developer']): Promise<MadeUser> {
  const user = await makeUser(http, stand.token, { roles });
  await manage('PUT', `/v1/iam/users/${user.id}`, { name });
  return user;
}

const editing = (id: string): string => `/console/users/${id}?open=edit`;

async function openEdit(id: string): Promise<Tab> {
  const tab = await stand.asAdmin({ path: editing(id) });
  await untilRolesAreThere(tab);
  return tab;
}

async function edit(tab: Tab, id: string): Promise<void> {
  await tab.page.goto(editing(id));
  await untilRolesAreThere(tab);
}

async function untilRolesAreThere({ page }: Tab): Promise<void> {
  await page
    .getByRole('dialog')
    .getByRole('option', { name: /^analyst\b/ })
    .waitFor();
}

/** Saves what is typed in the drawer, and closes it. */
async function save(page: Page): Promise<void> {
  const drawer = page.getByRole('dialog');
  await drawer.getByRole('button', { name: 'Save', exact: true }).click();
  await drawer.getByText('Saved.', { exact: true }).waitFor();
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
}

describe('the list of users', () => {
  it('asks the server for the search, the status and the role, and keeps them in the address', async () => {
    const found = await named('Amalia Findable', ['auditor']);
    const hidden = await named('Bertram Deactivated', ['auditor']);
    await manage('POST', `/v1/iam/users/${hidden.id}/deactivate`);
    const { page, problems } = await stand.asAdmin({ path: '/console/users' });
    await page.getByRole('searchbox', { name: 'Search users' }).fill('findable');
    const rows = page.getByRole('grid', { name: 'Users' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(2);
    expect(await rows.nth(1).textContent()).toContain(found.email);
    await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('findable');
    await page.getByRole('searchbox', { name: 'Search users' }).fill('');
    await page.getByRole('radio', { name: 'Deactivated' }).click();
    await expect.poll(() => rows.nth(1).textContent()).toContain('Bertram Deactivated');
    await page.getByRole('button', { name: 'Role', exact: true }).click();
    await page.getByRole('searchbox', { name: 'Show users with a role' }).fill('tenant-admin');
    await chooseOption(page.getByRole('option', { name: 'tenant-admin' }));
    await page.getByText('No user matches').waitFor();
    await expect.poll(() => new URL(page.url()).search).toBe('?tenant=default&status=deactivated&role=tenant-admin');
    await page.getByRole('button', { name: 'Show users by what the directory says' }).click();
    await page.getByRole('menuitem', { name: 'removed' }).click();
    await page.getByRole('button', { name: 'Remove the filter by the directory' }).waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get('directory')).toBe('removed');
    await page.getByRole('button', { name: 'Show all' }).click();
    await expect.poll(() => new URL(page.url()).search).toBe('?tenant=default');
    expect(problems).toEqual([]);
  });

  it('is sorted by its heads, and gives a role to all users that match and deactivates them, except the caller', async () => {
    const group = [await named('Zoe Bulk'), await named('Abel Bulk'), await named('Mia Bulk')];
    const { page, problems } = await stand.asAdmin({ path: '/console/users?q=bulk' });
    const rows = page.getByRole('grid', { name: 'Users' }).getByRole('row');
    await expect.poll(() => rows.nth(1).textContent()).toContain('Mia Bulk');
    await page.getByText('1–3 of 3').waitFor();
    await page.getByRole('columnheader', { name: 'Name' }).click();
    await expect.poll(() => rows.nth(1).textContent()).toContain('Abel Bulk');
    await page.getByRole('columnheader').first().locator('label').click();
    await page.getByText('3 users selected').waitFor();
    await page.getByRole('button', { name: 'Add a role' }).click();
    const question = page.getByRole('alertdialog');
    await chooseOption(question.getByRole('option', { name: /^auditor\b/ }));
    await expect.poll(() => question.getByText('will be changed').count()).toBe(3);
    await question.getByRole('button', { name: 'Add to 3 users' }).click();
    await question.waitFor({ state: 'detached' });
    for (const { id } of group) {
      expect((await manage('GET', `/v1/iam/users/${id}`)).body['roles']).toEqual(['auditor', 'developer']);
    }
    await page.getByRole('columnheader').first().locator('label').click();
    await page.getByRole('button', { name: 'Deactivate' }).click();
    await question.getByRole('button', { name: 'Deactivate 3 users' }).click();
    await question.waitFor({ state: 'detached' });
    for (const { id } of group) expect((await manage('GET', `/v1/iam/users/${id}`)).body['status']).toBe('deactivated');
    expect(problems).toEqual([]);
  });

  it('is selected whole, also the users that are not loaded, to add a role, to remove it and to deactivate', async () => {
    const tenant = 'whole-selection';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Whole selection' });
    // More than a page has, by SQL because requests would cost more than the rest of the test.
    await stand.db.knex.raw(
      `insert into users (id, tenant_id, name)
       select 'usr_' || lpad(n::text, 26, '0'), :tenant, case when n = 0 then 'Bystander' else 'Crowd ' || n end
       from generate_series(0, 60) n`,
      { tenant },
    );
    const changed = async (members: object): Promise<readonly unknown[]> => {
      const query = new URLSearchParams({ count: 'true', limit: '1', ...members });
      const { body } = await done(http, 'GET', `/v1/iam/users?${query}`, { token: stand.token, tenant });
      return [body['total'], (await stand.db.query({ text: BYSTANDER }))[0]];
    };
    const untouched = { role_names: [], status: 'active' };
    const { page, problems } = await stand.asAdmin({ path: `/console/users?tenant=${tenant}&q=crowd` });
    const question = page.getByRole('alertdialog');
    const act = async (action: string, confirmation: string, role?: RegExp): Promise<void> => {
      await page.getByText('1–50 of 60').waitFor();
      await page.getByRole('columnheader').first().locator('label').click();
      await page.getByText('50 users selected').waitFor();
      await page.getByRole('button', { name: 'Select all 60 that match' }).click();
      await page.getByText('All 60 users that match are selected').waitFor();
      await page.getByRole('button', { name: action }).click();
      if (role !== undefined) await chooseOption(question.getByRole('option', { name: role }));
      await question.getByRole('button', { name: confirmation }).click();
      await question.waitFor({ state: 'detached' });
    };
    await act('Add a role', 'Add to 60 users', /^auditor\b/);
    expect(await changed({ role: 'auditor' })).toEqual([60, untouched]);
    await act('Remove a role', 'Remove from 60 users', /^auditor\b/);
    expect(await changed({ role: 'auditor' })).toEqual([0, untouched]);
    await act('Deactivate', 'Deactivate 60 users');
    expect(await changed({ status: 'deactivated' })).toEqual([60, untouched]);
    expect(problems).toEqual([]);
  });

  it('opens a user with the keyboard', async () => {
    const user = await named('Keyboard Person');
    const { page, problems } = await stand.asAdmin({ path: '/console/users?q=keyboard' });
    await page.getByRole('row', { name: 'Keyboard Person' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/users/${user.id}`);
    expect(problems).toEqual([]);
  });
});

describe('creating a user', () => {
  it('gives a link that is shown once, sets the password, and signs the user in', async () => {
    const admin = await stand.asAdmin({ path: '/console/users?open=new' });
    const { page } = admin;
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('grace@example.com');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Grace Link');
    await page.getByRole('textbox', { name: 'Department' }).fill('Compilers');
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('developer');
    await chooseOption(page.getByRole('option', { name: 'developer' }));
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('button', { name: 'Copy link' }).click();
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(link).toMatch(new RegExp(`^${stand.edge.url}/console/set-password#token=\\S+$`));
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('row', { name: 'Grace Link' }).waitFor();
    expect(await page.content()).not.toContain(new URL(link).hash.slice('#token='.length));

    const grace = await stand.open({}, link);
    await grace.page.getByLabel('New password', { exact: true }).fill(PASSWORD);
    await grace.page.getByLabel('New password again').fill(PASSWORD);
    await grace.page.getByRole('button', { name: 'Set password' }).click();
    await grace.page.getByRole('button', { name: 'Sign in' }).click();
    await enter(grace.page, { email: 'grace@example.com', password: PASSWORD });
    await grace.page.getByText('Grace Link').first().waitFor();
    expect([...admin.problems, ...grace.problems]).toEqual([]);
  });

  it('shows the link also while the list of users answers late', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/users?open=new' });
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('textbox', { name: 'E-mail address' }).fill('early-link@example.com');
    await drawer.getByRole('textbox', { name: 'Name', exact: true }).fill('Early Link');
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/v1/iam/users?*', async (route) => {
      await released;
      await route.fallback();
    });
    await drawer.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('alertdialog').getByText('/console/set-password#token=').waitFor();
    release();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('row', { name: 'Early Link' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('with a password leads to the user, and shows at its field what the server refuses', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/users?open=new' });
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(ADMIN.email.replace('localhost', 'example.org'));
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Ada Password');
    await page.getByRole('radio', { name: 'Set it here' }).click();
    const password = page.getByLabel('Password', { exact: true }).and(page.locator('input'));
    await password.fill('short');
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.getByText(/15/).and(page.locator('[slot=errorMessage], [class*=error]')).first().waitFor();
    await password.fill(PASSWORD);
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.getByRole('heading', { level: 1, name: 'Ada Password' }).waitFor();
    expect((await tryLogin(http, { email: 'admin@example.org', password: PASSWORD })).status).toBe(200);
    expect(problems).toEqual([]);
  });

  it('says that an address is taken, and keeps what was typed', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/users?open=new' });
    const taken = await makeUser(http, stand.token);
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(taken.email);
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('Second of the name');
    await page.getByRole('button', { name: 'Create user' }).click();
    await page.getByText('Another user has this address.').waitFor();
    expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('Second of the name');
    expect(problems).toEqual([]);
  });
});

describe('one user', () => {
  const explained = async (person: Person): Promise<string> => {
    const token = await login(http, person);
    const reply = await call(http, 'GET', '/v1/iam/audit', { token });
    return reply.status === 200 ? 'allowed' : String(reply.body['code']);
  };

  it('is given a role and loses it, and the API allows and refuses accordingly', async () => {
    const user = await named('Role Holder', ['developer']);
    expect(await explained(user)).toBe('insufficient_permission');
    const tab = await openEdit(user.id);
    const { page } = tab;
    await chooseOption(page.getByRole('option', { name: /^auditor\b/ }));
    await save(page);
    await page.getByRole('link', { name: 'auditor' }).first().waitFor();
    await expect.poll(() => explained(user)).toBe('allowed');
    await edit(tab, user.id);
    await page.getByRole('button', { name: 'Remove auditor' }).click();
    await save(page);
    await expect.poll(() => explained(user)).toBe('insufficient_permission');
    expect(tab.problems).toEqual([]);
  });

  it('shows each permission with the role that gives it and what narrows it', async () => {
    const tenant = 'narrowed';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Narrowed' });
    const make = (kind: string, body: object) =>
      done(http, 'POST', `/v1/iam/${kind}`, { token: stand.token, tenant, body });
    await make('roles', {
      name: 'phi-trainer',
      permissions: ['finetuning:*'],
      resource_constraints: { models: ['phi-*'] },
    });
    await make('policies', {
      name: 'office-hours',
      description: 'denies at night',
      effect: 'deny',
      actions: ['chat:write'],
      resources: ['*'],
      attached_roles: ['developer'],
    });
    const user = await makeUser(http, stand.token, { roles: ['developer', 'phi-trainer'], tenant });
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}?tenant=${tenant}` });
    const row = (permission: string) => page.getByRole('row').filter({ hasText: permission });
    await expect.poll(() => row('finetuning:write').textContent()).toContain('only models phi-*');
    expect(await row('finetuning:write').textContent()).toContain('by hand');
    expect(await row('chat:write').textContent()).toContain('office-hours denies at night');
    expect(await row('chat:read').textContent()).toContain('nothing');
    await page.getByText(/Not given:.*admin:\* \(8\)/).waitFor();
    const { body } = await manage('GET', '/v1/iam/permissions?limit=1&count=true');
    await page.getByText(new RegExp(`^\\d+ of ${String(body['total'])} actions$`)).waitFor();
    expect(problems).toEqual([]);
  });

  it('is signed out at once when deactivated, and works again when activated', async () => {
    const user = await named('Leaver', ['auditor']);
    const own = await stand.signIn({ person: user, path: '/console/account' });
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}` });
    await page.getByRole('button', { name: 'Deactivate' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Deactivate' }).click();
    await page.getByRole('button', { name: 'Activate', exact: true }).waitFor();
    await own.page.reload();
    await own.page.getByRole('button', { name: 'Enter' }).waitFor();
    expect((await tryLogin(http, user)).status).toBe(401);
    await page.getByRole('button', { name: 'Activate', exact: true }).click();
    await page.getByRole('button', { name: 'Deactivate' }).waitFor();
    await expect.poll(async () => (await tryLogin(http, user)).status).toBe(200);
    expect(problems).toEqual([]);
  });

  it('saves nothing when nothing changed, and only the changed members when something did', async () => {
    const user = await named('Small Change');
    const tab = await openEdit(user.id);
    const sent: unknown[] = [];
    tab.page.on('request', (request) => {
      if (request.method() === 'PUT') sent.push([request.postDataJSON(), 'if-match' in request.headers()]);
    });
    const save = tab.page.getByRole('button', { name: 'Save', exact: true });
    expect(await save.getAttribute('aria-disabled')).toBe('true');
    await tab.page.getByRole('textbox', { name: 'Department' }).press('Enter');
    expect(sent).toEqual([]);
    await tab.page.getByRole('textbox', { name: 'Department' }).fill('Research');
    await save.click();
    await tab.page.getByRole('dialog').getByText('Saved.', { exact: true }).waitFor();
    await tab.page.getByText('Research').first().waitFor();
    expect(sent).toEqual([[{ department: 'Research' }, true]]);
    expect(tab.problems).toEqual([]);
  });

  it('keeps the typed values if another administrator saved first, shows that change, and saves on top of it', async () => {
    const user = await named('Contested');
    const tab = await openEdit(user.id);
    const { page } = tab;
    await page.getByRole('textbox', { name: 'Department' }).fill('Ours');
    await manage('PUT', `/v1/iam/users/${user.id}`, { name: 'Theirs' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect.poll(() => page.getByRole('dialog').getByRole('status').textContent()).toContain('Somebody else');
    await expect.poll(() => page.getByRole('dialog').locator('ins').allTextContents()).toContain('"Theirs"');
    expect(await page.getByRole('textbox', { name: 'Department' }).inputValue()).toBe('Ours');
    await page.getByRole('button', { name: 'Continue with the newest' }).click();
    expect(await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue()).toBe('Theirs');
    await save(page);
    const { body } = await manage('GET', `/v1/iam/users/${user.id}`);
    expect([body['name'], body['department']]).toEqual(['Theirs', 'Ours']);
    expect(tab.problems).toEqual([]);
  });

  it('is found among the locked after failed logins, unlocked in place, and signs in at once', async () => {
    const user = await named('Locked Out');
    for (let i = 0; i < FAILURES; i++)
      await tryLogin(http, { email: user.email, password: 'a wrong password of somebody' });
    expect((await tryLogin(http, user)).status).toBe(429);
    const { page, problems } = await stand.asAdmin({ path: '/console/users' });
    await page.getByRole('radio', { name: 'Locked' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('status')).toBe('locked');
    await page.getByRole('row', { name: 'Locked Out' }).click();
    await page.getByText('Too many logins with a wrong password.').waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Unlock' }).click();
    await page.getByText('Too many logins with a wrong password.').waitFor({ state: 'detached' });
    expect((await tryLogin(http, user)).status).toBe(200);
    await page.reload();
    await expect
      .poll(() => page.locator('dt', { hasText: 'Last login' }).locator('+ dd').textContent())
      .toBe('just now');
    expect(problems).toEqual([]);
  });

  it('keeps metadata that is added, changed and removed row by row, and says which name is written twice', async () => {
    const user = await named('Described');
    await manage('PUT', `/v1/iam/users/${user.id}`, { metadata: { cost_center: '4711', team: 'blue' } });
    const tab = await openEdit(user.id);
    const { page } = tab;
    await page.getByRole('button', { name: 'Remove team' }).click();
    await page.getByRole('textbox', { name: 'Value 1' }).fill('4712');
    await page.getByRole('button', { name: 'Add a pair' }).click();
    await page.getByRole('textbox', { name: 'Name 2' }).fill('cost_center');
    await page.getByRole('status').filter({ hasText: 'Two pairs have the name cost_center.' }).waitFor();
    await page.getByRole('textbox', { name: 'Name 2' }).fill('floor');
    await page.getByRole('textbox', { name: 'Value 2' }).fill('3');
    await save(page);
    expect((await manage('GET', `/v1/iam/users/${user.id}`)).body['metadata']).toEqual({
      cost_center: '4712',
      floor: '3',
    });
    await expect.poll(() => page.locator('dt', { hasText: 'floor' }).locator('+ dd').textContent()).toBe('3');
    expect(tab.problems).toEqual([]);
  });

  it('gets a new password by a one-time link', async () => {
    const user = await named('Forgetful');
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}` });
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Reset password' }).click();
    await page.getByRole('button', { name: 'Copy link' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain('/console/set-password#token=');
    await page.getByRole('button', { name: 'I have saved it' }).click();
    expect(problems).toEqual([]);
  });

  it('takes the link of another user off the screen when its page opens', async () => {
    const forgetful = await named('Forgetful Twin');
    const other = await named('Other Twin');
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${other.id}` });
    const title = page.getByRole('heading', { level: 1 });
    await expect.poll(() => title.textContent()).toBe('Other Twin');
    await page.evaluate(`history.pushState(null, '', '/console/users/${forgetful.id}')`);
    await expect.poll(() => title.textContent()).toBe('Forgetful Twin');
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Reset password' }).click();
    const link = page.getByRole('alertdialog', { name: 'A link for' });
    await link.waitFor();
    await page.evaluate(`history.pushState(null, '', '/console/users/${other.id}')`);
    await link.waitFor({ state: 'detached' });
    await expect.poll(() => title.textContent()).toBe('Other Twin');
    expect(problems).toEqual([]);
  });

  it('changes its own email address and resets its own password with its current password only', async () => {
    const user = await makeUser(http, stand.token, { roles: ['tenant-admin'] });
    const tab = await stand.signIn({ person: user, path: '/console/users' });
    const { page } = tab;
    await edit(tab, user.id);
    const email = `moved-${user.email}`;
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(email);
    await page.getByLabel('Your current password').fill('not the current password');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('The current password is wrong.').waitFor();
    await page.getByLabel('Your current password').fill(user.password);
    await save(page);
    expect((await manage('GET', `/v1/iam/users/${user.id}`)).body['email']).toBe(email);
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Reset password' }).click();
    await page.getByLabel('Your current password').fill('not the current password');
    await page.getByRole('button', { name: 'Reset password' }).click();
    await page.getByText('The current password is wrong.').waitFor();
    await page.getByLabel('Your current password').fill(user.password);
    await page.getByRole('button', { name: 'Reset password' }).click();
    await page.getByRole('button', { name: 'Copy link' }).waitFor();
  });

  it('shows its keys beside what it may do, and how many keys and sessions it has', async () => {
    const user = await named('Key Holder');
    await manage('POST', '/v1/iam/api-keys', {
      name: 'notebook',
      description: 'k',
      scopes: ['chat:read'],
      user_id: user.id,
      expires_in_days: 9,
    });
    await login(http, user);
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}` });
    await page.getByRole('tab', { name: 'Keys 1' }).waitFor();
    await page.getByRole('tab', { name: 'Sessions 1' }).waitFor();
    await page
      .getByRole('listitem')
      .filter({ hasText: 'never used' })
      .getByRole('link', { name: 'notebook' })
      .waitFor();
    await page.getByRole('tab', { name: 'Keys 1' }).click();
    await page.getByRole('grid', { name: 'Keys', exact: true }).getByRole('link', { name: 'notebook' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('shows the keys that it created for others, which an administrator opens in the list of keys', async () => {
    const [maker, owner] = [await named('Key Maker', ['admin']), await named('Key Owner')];
    const token = await login(http, maker);
    for (const key of [
      { name: 'of the tenant', description: 'k', scopes: ['chat:read'], expires_in_days: 9 },
      { name: 'of another user', description: 'k', scopes: ['chat:read'], user_id: owner.id, expires_in_days: 9 },
    ]) {
      await done(http, 'POST', '/v1/iam/api-keys', { token, body: key });
    }
    await manage('POST', `/v1/iam/users/${maker.id}/deactivate`);
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${maker.id}?tab=keys` });
    const created = page.getByRole('grid', { name: 'Keys that this user created' });
    await created.getByRole('row').filter({ hasText: 'of the tenant' }).filter({ hasText: 'The tenant' }).waitFor();
    await created.getByRole('row').filter({ hasText: 'of another user' }).filter({ hasText: 'Key Owner' }).waitFor();
    await page.getByText('This user has no keys').waitFor();
    await page.getByRole('link', { name: 'Open in API keys' }).nth(1).click();
    await page.getByText('Created by: Key Maker').waitFor();
    const keys = page.getByRole('grid', { name: 'API keys' }).getByRole('row');
    await expect.poll(() => keys.count()).toBe(3);
    await keys.filter({ hasText: 'of another user' }).click();
    await page.getByRole('dialog').getByRole('link', { name: 'Key Maker' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('is signed out in one place, and stays signed in in the others', async () => {
    const user = await named('Two Places', ['auditor']);
    const own = await stand.signIn({ person: user, path: '/console/account' });
    const elsewhere = await login(http, user);
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}?tab=sessions` });
    const rows = page.getByRole('grid', { name: 'Sessions' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(3);
    await page.getByRole('button', { name: 'End the session of Chrome' }).click();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByRole('tab', { name: 'Sessions 1' }).waitFor();
    await own.page.reload();
    await own.page.getByRole('button', { name: 'Enter' }).waitFor();
    expect((await call(http, 'GET', '/v1/auth/me', { token: elsewhere })).status).toBe(200);
    await page.getByRole('tab', { name: 'Activity' }).click();
    await page.getByRole('radio', { name: 'About this user' }).click();
    await page.getByText('user.end_session', { exact: true }).waitFor();
    expect(problems).toEqual([]);
  });

  it('stays locked if it has more permissions than the caller, and the page says so', async () => {
    const root = await named('Locked Root', ['admin']);
    const manager = await makeUser(http, stand.token, { roles: ['tenant-admin'] });
    for (let i = 0; i < FAILURES; i++)
      await tryLogin(http, { email: root.email, password: 'a wrong password of somebody' });
    const { page, problems } = await stand.signIn({ person: manager, path: `/console/users/${root.id}` });
    await page.getByRole('button', { name: 'Unlock' }).click();
    await page.getByText('This user has more permissions than you').waitFor();
    expect((await manage('GET', `/v1/iam/users/${root.id}`)).body['locked_until']).not.toBeNull();
    await manage('DELETE', `/v1/iam/users/${root.id}`);
    expect(problems).toEqual([]);
  });

  it('is signed out everywhere by the end of all sessions', async () => {
    const user = await named('Everywhere', ['auditor']);
    const own = await stand.signIn({ person: user, path: '/console/account' });
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}?tab=sessions` });
    await page.getByRole('button', { name: 'End all sessions' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'End all sessions' }).click();
    await page.getByText('All sessions have ended.').waitFor();
    await own.page.reload();
    await own.page.getByRole('button', { name: 'Enter' }).waitFor();
    await page.getByRole('tab', { name: 'Activity' }).click();
    await page.getByRole('radio', { name: 'About this user' }).click();
    await page.getByText('user.end_sessions').waitFor();
    expect(problems).toEqual([]);
  });

  it('is deleted only after the address is typed', async () => {
    const user = await named('Doomed');
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${user.id}` });
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'Delete user' }).click();
    const dialog = page.getByRole('alertdialog');
    expect(await dialog.getByRole('button', { name: 'Delete user' }).getAttribute('aria-disabled')).toBe('true');
    await dialog.getByRole('textbox').fill(user.email);
    await dialog.getByRole('button', { name: 'Delete user' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/users');
    expect((await call(http, 'GET', `/v1/iam/users/${user.id}`, { token: stand.token })).status).toBe(404);
    expect(problems).toEqual([]);
  });

  it('shows in place that the last administrator stays', async () => {
    const { body } = await manage('GET', `/v1/auth/me`);
    const { page, problems } = await stand.asAdmin({ path: `/console/users/${String(body['id'])}` });
    await page.getByRole('button', { name: 'Deactivate' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Deactivate' }).click();
    await page.getByText('This is the last active administrator').waitFor();
    expect(problems).toEqual([]);
  });

  it('shows in place that a stronger user stays as it is', async () => {
    const manager = await makeUser(http, stand.token, { roles: ['tenant-admin'] });
    const { body } = await manage('GET', '/v1/auth/me');
    const tab = await stand.signIn({ person: manager });
    await edit(tab, String(body['id']));
    await tab.page.getByRole('textbox', { name: 'Department' }).fill('Not mine');
    await tab.page.getByRole('button', { name: 'Save', exact: true }).click();
    await tab.page.getByText('This user has more permissions than you').waitFor();
    expect(await tab.page.getByRole('textbox', { name: 'Department' }).inputValue()).toBe('Not mine');
    expect(tab.problems).toEqual([]);
  });

  it('is hidden from users without admin:users, and the page names that permission', async () => {
    const reader = await makeUser(http, stand.token, { roles: ['auditor'] });
    const { page, problems } = await stand.signIn({ person: reader, path: '/console/users' });
    await page.getByRole('heading', { level: 1, name: /You may not open Users/ }).waitFor();
    await page.getByText('This page needs admin:users.').waitFor();
    expect(problems.filter((problem) => !problem.includes('403'))).toEqual([]);
  });
});

describe('the role picker', () => {
  it('finds the role with exactly the typed name first, also if it is on a later page', async () => {
    // A slow machine refuses the last of many simultaneous requests.
    for (let n = 0; n < 60; n++) {
      await manage('POST', '/v1/iam/roles', { name: `many-${String(n).padStart(2, '0')}`, permissions: ['chat:read'] });
    }
    await manage('POST', '/v1/iam/roles', { name: 'zz-last', permissions: ['chat:read'] });
    const user = await named('Chooser');
    const tab = await openEdit(user.id);
    const { page } = tab;
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('zz-last');
    await chooseOption(page.getByRole('option').first().filter({ hasText: 'zz-last' }));
    await save(page);
    expect((await manage('GET', `/v1/iam/users/${user.id}`)).body['roles']).toEqual(['developer', 'zz-last']);
    expect(tab.problems).toEqual([]);
  });
});

describe('in both themes, on desktops and phones, no serious accessibility fault is found, and nothing is wider than the screen', () => {
  async function lookAt(paths: (id: string) => readonly string[]): Promise<void> {
    const user = await named('Looked At');
    await login(http, user);
    await manage('PUT', `/v1/iam/users/${user.id}`, { metadata: { cost_center: '4711' } });
    const key = { name: 'notebook', description: 'k', scopes: ['chat:read'], user_id: user.id, expires_in_days: 9 };
    await manage('POST', '/v1/iam/api-keys', key);
    const { page, problems } = await stand.asAdmin({ path: '/console/users' });
    for (const path of paths(user.id)) {
      await visit(page, `/console/users${path}`);
      expect(await faultsInEveryLook(page)).toEqual([]);
    }
    expect(problems).toEqual([]);
  }

  it('in the list and the drawers', () => lookAt((id) => ['', '?q=Looked&open=new', `/${id}?open=edit`]));

  it('in the parts of one user', () =>
    lookAt((id) => [`/${id}`, `/${id}?tab=keys`, `/${id}?tab=sessions`, `/${id}?tab=activity`]));
});
