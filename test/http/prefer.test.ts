/** `Prefer: wait=applied`: the server asks its replicas only for a caller that has proven something. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeRefreshToken } from '../../src/identity/opaque-tokens.ts';
import { type Harness, startHarness, text } from './harness.ts';

let h: Harness;
beforeAll(async () => {
  h = await startHarness();
});
afterAll(() => h?.close());

it('a logout waits for the replicas, also a repeated one, and does not with a token that is unknown', async () => {
  const headers = { prefer: 'wait=applied' };
  const logout = async (token: string) => {
    const reply = await h.api('POST', '/v1/auth/logout', { headers, body: { refresh_token: token } });
    return [reply.status, reply.headers['preference-applied']];
  };
  const person = { email: 'leaving@example.test', password: 'the password of a test' };
  await h.api('POST', '/v1/iam/users', { as: h.root.token, body: { ...person, name: 'Leaving' } });
  const token = text((await h.api('POST', '/v1/auth/login', { body: person })).json, 'refresh_token');
  expect(await logout(token)).toEqual([204, 'wait=applied']);
  expect(await logout(token)).toEqual([204, 'wait=applied']);
  expect(await logout(makeRefreshToken().text)).toEqual([204, undefined]);
  expect(await logout('no token of any form')).toEqual([204, undefined]);
});
