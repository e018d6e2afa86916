/** Shared by the tests of policies: requests through Envoy, and the controls of the editor. */

import type { Page } from 'playwright-core';
import { makeKey, makeUser } from '../../server/support/client.ts';
import { chooseOption } from './browser.ts';
import type { ConsoleStand } from './stand.ts';

/** Returns the answer of Envoy to a request with the key: the status, and the policy that denied. */
export async function ask({ edge }: ConsoleStand, key: string, path = '/v1/chat/history'): Promise<string> {
  const answer = await fetch(`${edge.url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  const text = await answer.text();
  return answer.status === 403 ? `403 ${JSON.parse(text).policy}` : String(answer.status);
}

/** A key whose owner is a developer. */
export async function developerKey({
  server: { http },
  token,
}: ConsoleStand): Promise<{ readonly id: string; readonly key: string; readonly owner: string }> {
  const user = await makeUser(http, token, { roles: ['developer'] });
  return { ...(await makeKey(http, token, { owner: user.id, scopes: ['chat:*', 'embeddings:*'] })), owner: user.id };
}

export async function chooseAction(page: Page, pattern: string): Promise<void> {
  await page.getByRole('searchbox', { name: 'Search: Actions' }).fill(pattern);
  await chooseOption(page.getByRole('option', { name: pattern, exact: false }).first());
}

/** Saves a picture in the folder that POSTERN_TEST_PICTURES names. */
export async function shoot(page: Page, name: string): Promise<void> {
  const folder = process.env['POSTERN_TEST_PICTURES'];
  if (folder === undefined) return;
  await page.evaluate('scrollTo(0, 0)');
  await page.screenshot({ path: `${folder}/${name.replaceAll(' ', '-')}.png`, fullPage: true });
}
