/** Names of one long word, in any script, leave every screen and every drawer inside the window. */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { done } from '../server/support/client.ts';
import { applyLook, DESKTOP, PHONE, untilSettled, visit } from './support/browser.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const LAPTOP = { width: 1280, height: 800 };
/** Wider than a screen with icons in place of the rail. */
const NARROW = { width: 1190, height: 800 };
const TENANT = 'long-names';
const NAME = `${'مدير'.repeat(20)}👩🏽‍🚀${'W'.repeat(100)}`;
const ROLE = 'a'.repeat(63);
const POLICY = 'p'.repeat(63);
const MODEL = 'm'.repeat(120);

let stand: ConsoleStand;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
});

const manage = async (path: string, body: object, tenant?: string) =>
  (await done(stand.server.http, 'POST', path, { token: stand.token, tenant, body })).body;

/** The paths of screens and drawers that show these names. */
async function screens(): Promise<readonly string[]> {
  await manage('/v1/iam/tenants', { id: TENANT, name: NAME.slice(0, 120) });
  const constraints = { models: [MODEL] };
  const role = { name: ROLE, permissions: ['chat:write'], resource_constraints: constraints };
  await manage('/v1/iam/roles', role, TENANT);
  const policy = { name: POLICY, effect: 'deny', actions: ['chat:write'], resources: [`models/${MODEL}`] };
  await manage('/v1/iam/policies', { ...policy, attached_roles: [ROLE] }, TENANT);
  const person = { email: `${'long'.repeat(12)}@${'long'.repeat(12)}.example.com`, name: NAME, department: NAME };
  const user = String((await manage('/v1/iam/users', { ...person, roles: [ROLE] }, TENANT))['id']);
  const made = {
    name: NAME.slice(0, 100),
    description: NAME,
    scopes: ['chat:write'],
    expires_in_days: 3,
    user_id: user,
  };
  const key = String((await manage('/v1/iam/api-keys', { ...made, resource_constraints: constraints }, TENANT))['id']);
  return [
    '/',
    '/keys',
    `/keys?open=${key}`,
    `/keys?open=${key}&act=edit`,
    `/connect?key=${key}`,
    '/users',
    `/users/${user}`,
    `/users/${user}?tab=keys`,
    `/users/${user}?tab=activity`,
    `/users/${user}?open=edit`,
    '/roles',
    `/roles/${ROLE}`,
    '/policies',
    `/policies/${POLICY}`,
    '/audit',
    '/tenants',
    `/tenants?open=${TENANT}`,
    '/onboarding',
  ];
}

/** By how many pixels the page is wider than the window, and the number of buttons of a dialog that are outside of it. */
function outside(page: Page): Promise<readonly [number, number]> {
  return page.evaluate(`[
    Math.max(0, document.documentElement.scrollWidth - innerWidth),
    [...document.querySelectorAll('[role=dialog] button')].filter((one) => one.getBoundingClientRect().right > innerWidth).length,
  ]`);
}

describe('names of one long word', () => {
  it('leave every screen inside the window, and every button of a drawer in reach, on desktops, laptops and phones', async () => {
    const { page, problems } = await stand.asAdmin({ path: `/console/account?tenant=${TENANT}` });
    const faults: string[] = [];
    for (const path of await screens()) {
      await visit(page, `/console${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}`);
      await untilSettled(page);
      for (const look of [DESKTOP, LAPTOP, NARROW, PHONE]) {
        await applyLook(page, look);
        // Parts that measure themselves take the new width some frames after the others.
        await expect
          .poll(() => outside(page), { timeout: 2_000 })
          .toEqual([0, 0])
          .catch(async () => {
            faults.push(
              `${path} at ${look.width} px: ${(await outside(page)).join(' px too wide, buttons outside: ')}`,
            );
          });
      }
      await applyLook(page, DESKTOP);
    }
    expect(faults).toEqual([]);
    expect(problems).toEqual([]);
  });
});
