/** Saving, discarding and leaving, which are the same in all forms. */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done, login, makeKey, makeUser } from '../server/support/client.ts';
import { chooseOption, untilSettled, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });

/** Low enough that no form fits. */
const LOW = { width: 1440, height: 560 };
const PHONE = { width: 390, height: 844 };

interface Editor {
  readonly path: string;
  /** The label of a field to type into. */
  readonly field: string;
}

let made: Promise<readonly Editor[]> | undefined;

/** All editors of stored resources. */
function editors(): Promise<readonly Editor[]> {
  made ??= (async () => {
    await manage('POST', '/v1/iam/roles', { name: 'form-role', permissions: ['chat:read'] });
    await manage('POST', '/v1/iam/policies', {
      name: 'form-policy',
      effect: 'deny',
      actions: ['rag:query'],
      resources: ['collections/secret'],
      attached_roles: ['form-role'],
    });
    await manage('POST', '/v1/iam/tenants', { id: 'form-tenant', name: 'Of forms' });
    const user = await makeUser(http, stand.token, { roles: ['developer'] });
    const key = await makeKey(http, stand.token, { scopes: ['models:read'] });
    return [
      { path: '/console/roles/form-role', field: 'Description' },
      { path: '/console/policies/form-policy', field: 'Description' },
      { path: '/console/tenants?open=form-tenant', field: 'Name' },
      { path: `/console/users/${user.id}?open=edit`, field: 'Department' },
      { path: `/console/keys?open=${key.id}&act=edit`, field: 'Description' },
    ];
  })();
  return made;
}

/** An optional field says so after its label. */
const fieldOf = (page: Page, { field }: Editor): Locator =>
  page.getByRole('textbox', { name: new RegExp(`^${field}`) }).first();

/** Reports whether all of an element is inside the window and nothing covers it. */
async function isInSight(page: Page, element: Locator): Promise<boolean> {
  await element.waitFor();
  const box = await element.boundingBox();
  const height = page.viewportSize()?.height ?? 0;
  if (box === null || box.y < 0 || box.y + box.height > height) return false;
  const at = `document.elementFromPoint(${box.x + box.width / 2}, ${box.y + box.height / 2})`;
  return (
    (await element.textContent()) ===
    (await page.evaluate(`${at}?.closest('button, input, [role=status]')?.textContent`))
  );
}

/** The answer to every save: refuses one member. */
async function refuseSaves(page: Page, member: string): Promise<void> {
  const refusal = {
    ...{
      type: 'about:blank',
      title: 'Refused',
      status: 422,
      code: 'validation_failed',
      detail: 'Refused by the test.',
    },
    errors: [{ path: `/${member}`, message: 'not this' }],
  };
  await page.route('**/v1/iam/**', (route) =>
    route.request().method() === 'PUT'
      ? route.fulfill({ status: 422, contentType: 'application/problem+json', body: JSON.stringify(refusal) })
      : route.fallback(),
  );
}

describe('a list of texts', () => {
  it('is sent with the text that is typed in it, and is not sent while that text has a fault', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/new-budget' });
    const field = (name: string): Locator => page.getByRole('textbox', { name });
    await field('Name').fill('typed models');
    await field('Limit in USD').fill('1.00');
    const models = field('Models');
    await models.fill('*'.repeat(40));
    await page.getByRole('button', { name: 'Create budget' }).click();
    await models.and(page.locator(':focus')).waitFor();
    expect(await models.getAttribute('aria-invalid')).toBe('true');
    await models.fill('gpt-*');
    const sent = page.waitForRequest((request) => request.method() === 'POST' && request.url().endsWith('/budgets'));
    await models.press('Control+Enter');
    expect((await sent).postDataJSON()).toMatchObject({ models: ['gpt-*'] });
    await page.getByRole('heading', { level: 1, name: 'typed models' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('every button', () => {
  /** Holds the matching requests until they are refused. */
  async function hold(page: Page, method: string, path: string) {
    const { promise: refused, resolve: refuse } = Promise.withResolvers<void>();
    let requests = 0;
    await page.route(path, async (route) => {
      if (route.request().method() !== method) return route.fallback();
      requests++;
      await refused;
      await route.fulfill({ status: 403 });
    });
    return { count: () => requests, refuse };
  }

  it('sends one request at a time, also if it ends a session, saves a list or resets a password', async () => {
    const person = await makeUser(http, stand.token, { roles: ['tenant-admin'] });
    await login(http, person);
    const { page, problems } = await stand.signIn({ person, path: '/console/account' });
    const item = (menu: string, name: string) => async (): Promise<void> => {
      await page.getByRole('button', { name: menu }).click();
      await page.getByRole('menuitem', { name }).click({ force: true });
      await page.keyboard.press('Escape');
    };
    const press = (button: Locator) => () => button.click({ force: true });
    const user = await makeUser(http, stand.token);
    const twice = [
      ['DELETE', '**/v1/auth/sessions/*', '/console/account', press(page.getByRole('button', { name: /^End the/ }))],
      ['GET', '**/v1/iam/usage?*', '/console/usage', press(page.getByRole('button', { name: 'Export as CSV' }))],
      ['GET', '**/v1/iam/audit*', '/console/audit', item('Export', 'As CSV')],
      ['POST', '**/password-reset', `/console/users/${user.id}`, item('More actions', 'reset')],
    ] as const;
    for (const [method, request, path, act] of twice) {
      await visit(page, path);
      await untilSettled(page);
      const held = await hold(page, method, request);
      await act();
      await expect.poll(held.count).toBe(1);
      await act();
      // A request that the second press sent is before this one.
      await page.evaluate("fetch('/console/mark.svg')");
      expect([request, held.count()]).toEqual([request, 1]);
      held.refuse();
      await page.unrouteAll({ behavior: 'wait' });
    }
    expect(problems).toEqual([]);
  });
});

describe('every editor', () => {
  it('shows Save, a refusal and a success inside the window, and moves the focus to the field that is refused', async () => {
    const { page, problems } = await stand.asAdmin();
    const outside: string[] = [];
    for (const [i, editor] of (await editors()).entries()) {
      const { width, height } = i % 2 === 0 ? LOW : PHONE;
      await page.setViewportSize({ width, height });
      await visit(page, editor.path);
      const field = fieldOf(page, editor);
      await field.fill('typed by the test');
      await refuseSaves(page, editor.field.toLowerCase());
      const see = async (what: string, element: Locator): Promise<void> => {
        if (!(await isInSight(page, element))) outside.push(`${editor.path} at ${width} px: ${what}`);
      };
      const save = page.getByRole('button', { name: /^Save/ });
      await see('Save', save);
      await save.click();
      await see('the refusal', page.getByRole('status').filter({ hasText: 'Not saved. Correct the marked field.' }));
      await field.and(page.locator(':focus')).waitFor();
      await see('the refused field', field);
      await page.unroute('**/v1/iam/**');
      await save.click();
      await see('the success', page.getByRole('status').filter({ hasText: /^Saved\./ }));
    }
    expect(outside).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('keeps what is typed while the server saves, and says that it is not saved', async () => {
    const { page, problems } = await stand.asAdmin();
    const lost: string[] = [];
    for (const editor of await editors()) {
      await visit(page, editor.path);
      const field = fieldOf(page, editor);
      await field.fill('first');
      const { promise: asked, resolve: isAsked } = Promise.withResolvers<void>();
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      await page.route('**/v1/iam/**', async (route) => {
        if (route.request().method() === 'PUT') {
          isAsked();
          await released;
        }
        await route.fallback();
      });
      await page.getByRole('button', { name: /^Save/ }).click();
      await asked;
      await field.press('End');
      await page.keyboard.type(', second');
      const answered = page.waitForResponse((response) => response.request().method() === 'PUT');
      release();
      expect((await answered).status(), editor.path).toBe(200);
      await page.unroute('**/v1/iam/**');
      await page.getByText('Not saved yet.').waitFor();
      await expect.poll(() => page.getByRole('button', { name: /^Save/ }).getAttribute('aria-disabled')).toBeNull();
      if ((await field.inputValue()) !== 'first, second') lost.push(editor.path);
      await page.getByRole('button', { name: /^Save/ }).click();
      await page.getByText(/^Saved\./).waitFor();
      if ((await field.inputValue()) !== 'first, second') lost.push(`${editor.path}, saved`);
    }
    expect(lost).toEqual([]);
    expect(problems).toEqual([]);
  });

  it('saves on top of a change that a button of the page made to other members, also before that change is read', async () => {
    const tenant = 'form-buttons';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Of buttons' });
    const budget = { name: 'switched', unit: 'money', limit: '100.00', period: 'month', applies_to: { tenant: true } };
    const { body } = await done(http, 'POST', '/v1/iam/budgets', { token: stand.token, tenant, body: budget });
    const { page, problems } = await stand.asAdmin({ path: `/console/budgets/${String(body['id'])}?tenant=${tenant}` });
    await page.getByRole('button', { name: 'Disable' }).click();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/v1/iam/budgets/*', async (route) => {
      if (route.request().method() === 'GET') await released;
      await route.fallback();
    });
    await page.getByRole('alertdialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('alertdialog').waitFor({ state: 'detached' });
    await page.getByRole('textbox', { name: 'Limit in USD' }).fill('200.00');
    const answered = page.waitForResponse((response) => response.request().method() === 'PUT');
    await page.getByRole('button', { name: 'Save budget' }).click();
    expect((await answered).status()).toBe(412);
    release();
    await page
      .getByRole('status')
      .filter({ hasText: /^Saved\./ })
      .waitFor();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    expect(await page.getByRole('textbox', { name: 'Limit in USD' }).inputValue()).toBe('200.00');
    expect(problems).toEqual([]);
  });
});

describe('unsaved work', () => {
  const question = (page: Page): Locator => page.getByRole('alertdialog', { name: 'Your changes are not saved' });

  it('stays when Escape, a press beside the drawer or the back button would close it, until its author leaves it', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/users' });
    await page.getByRole('button', { name: 'Create a user' }).click();
    const drawer = page.getByRole('dialog', { name: 'Create a user' });
    const name = drawer.getByRole('textbox', { name: 'Name', exact: true });
    await name.fill('Half a name');
    for (const leave of [
      () => page.keyboard.press('Escape'),
      () => page.mouse.click(5, 400),
      () => page.goBack(),
      () => drawer.getByRole('button', { name: 'Cancel' }).click(),
    ]) {
      await leave();
      await question(page).getByRole('button', { name: 'Keep editing' }).click();
      await question(page).waitFor({ state: 'detached' });
      await drawer.locator(':focus').waitFor();
      expect(await name.inputValue()).toBe('Half a name');
    }
    await page.keyboard.press('Escape');
    await question(page).getByRole('button', { name: 'Leave without saving' }).click();
    await drawer.waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  });

  it('stays when a link, a sign-out or the end of the page would lose it, and is no question once it is saved', async () => {
    await editors();
    const { page, problems } = await stand.asAdmin({ path: '/console/roles/form-role' });
    const description = page.getByRole('textbox', { name: 'Description' });
    await description.fill('not saved yet');
    await page.getByRole('link', { name: 'Users', exact: true }).click();
    await question(page).getByRole('button', { name: 'Keep editing' }).click();
    await page.getByRole('button', { name: 'Account and sessions' }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await question(page).getByRole('button', { name: 'Keep editing' }).click();
    const asked = page.waitForEvent('dialog');
    await page.evaluate('void setTimeout(() => location.reload())');
    const dialog = await asked;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.dismiss();
    expect(await description.inputValue()).toBe('not saved yet');
    await page.getByRole('button', { name: 'Save role' }).click();
    await page.getByText(/^Saved\./).waitFor();
    await page.getByRole('link', { name: 'Users', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Users' }).waitFor();
    expect(problems).toEqual([]);
  });

  it('is a secret that is shown once, which the back button and the end of the page take away after a question only', async () => {
    const tenant = 'form-secret';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Secret' });
    await makeKey(http, stand.token, { tenant });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?tenant=${tenant}` });
    await page.getByRole('row', { name: 'made by a test' }).click();
    await page.getByRole('button', { name: 'Rotate' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Rotate' }).click();
    const secret = page.getByRole('alertdialog').getByText(/^psk_\S{20,}$/);
    await secret.waitFor();
    const shownOnce = page.getByRole('alertdialog', { name: 'This is shown only once' });
    await page.goBack();
    await shownOnce.getByRole('button', { name: 'Stay' }).click();
    await shownOnce.waitFor({ state: 'detached' });
    await expect.poll(() => page.url()).toContain('open=key_');
    await secret.waitFor();
    const asked = page.waitForEvent('dialog');
    await page.evaluate('void setTimeout(() => location.reload())');
    await (await asked).dismiss();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await shownOnce.count()).toBe(0);
    expect(problems).toEqual([]);
  });
});

describe('a form that a proxy answers in place of the server', () => {
  it.for([
    { status: 502, says: 'Postern does not answer, so it is not known whether this was done. Try again.' },
    { status: 403, says: 'Something answered that is not Postern. Look at the proxy between this page and Postern.' },
  ])('says so for $status, and keeps the input', async ({ status, says }) => {
    const { page, problems } = await stand.asAdmin({ path: '/console/users?open=new' });
    await page.route('**/v1/iam/users', async (route) => {
      if (route.request().method() !== 'POST') return route.fallback();
      await route.fulfill({ status, contentType: 'text/html', body: '<h1>Not from Postern</h1>' });
    });
    const drawer = page.getByRole('dialog');
    const name = drawer.getByRole('textbox', { name: 'Name', exact: true });
    await name.fill('Kept');
    await drawer.getByRole('textbox', { name: 'E-mail address' }).fill(`kept-${status}@example.com`);
    await drawer.getByRole('button', { name: 'Create user' }).click();
    await drawer.getByText(says).waitFor();
    expect([await name.inputValue(), problems]).toEqual(['Kept', []]);
  });
});

describe('a form that is sent several times before the answer', () => {
  async function holdPosts(page: Page): Promise<() => void> {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/v1/iam/api-keys', async (route) => {
      if (route.request().method() === 'POST') await released;
      await route.fallback();
    });
    return release;
  }

  async function keysOf(tenant: string): Promise<unknown> {
    return (await done(http, 'GET', '/v1/iam/api-keys?limit=1&count=true', { token: stand.token, tenant })).body[
      'total'
    ];
  }

  it('creates one resource, by double click and by Enter', async () => {
    const tenant = 'form-twice';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Twice' });
    const { page, problems } = await stand.asAdmin({ path: `/console/keys?tenant=${tenant}&open=new` });
    const release = await holdPosts(page);
    const drawer = page.getByRole('dialog', { name: 'Create key' });
    const description = drawer.getByRole('textbox', { name: 'Description' });
    await description.fill('made once');
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('models:read');
    await chooseOption(drawer.getByRole('option', { name: 'models:read' }));
    await drawer.getByRole('button', { name: 'Create key' }).dblclick();
    await description.press('Enter');
    await description.press('Control+Enter');
    await description.fill('another text, which is not sent');
    expect(await description.inputValue()).toBe('made once');
    release();
    await page.getByRole('button', { name: 'I have saved it' }).click();
    await page.getByRole('row', { name: 'made once' }).waitFor();
    expect([await keysOf(tenant), problems]).toEqual([1, []]);
  });

  it('creates one resource by Enter in the only field of a form', async () => {
    const tenant = 'form-enter';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Enter' });
    const { page, problems } = await stand.asAdmin({ path: `/console/onboarding?tenant=${tenant}` });
    const release = await holdPosts(page);
    const purpose = page.getByRole('textbox', { name: 'Purpose of the key' });
    await purpose.fill('made once');
    for (let press = 0; press < 3; press++) await purpose.press('Enter');
    release();
    await page.getByText('This is the only time that the key is shown.').first().waitFor();
    expect([await keysOf(tenant), problems]).toEqual([1, []]);
  });
});
