/** The types of the client are those of the API. */

import { readFile } from 'node:fs/promises';
import { expect, expectTypeOf, it } from 'vitest';
import type { Client, Row, User } from '../../client/index.ts';
import { clientTypes, FILE } from '../../scripts/client-types.ts';

it('client/types.ts is what the description of the API says (else: npm run client:types)', async () => {
  expect(await readFile(FILE, 'utf8')).toBe(clientTypes());
});

/**
 * Never called: the compiler reads it. Each @ts-expect-error is an assertion, with what is wrong with the call below
 * it: the check of types fails where such a call would be taken.
 */
function calls(client: Client): readonly unknown[] {
  const id = 'usr_1';
  return [
    client.request('GET', '/v1/iam/users/{id}', { path: { id } }),
    client.request('GET', '/v1/iam/users'),
    client.request('GET', '/v1/iam/users', { query: { status: 'active', limit: 5 } }),
    // @ts-expect-error: there is no such path
    client.request('GET', '/v1/iam/user'),
    // @ts-expect-error: not with this method
    client.request('DELETE', '/v1/iam/users'),
    // @ts-expect-error: the path needs its parameter
    client.request('GET', '/v1/iam/users/{id}'),
    // @ts-expect-error: not by this name
    client.request('GET', '/v1/iam/users/{id}', { path: { name: id } }),
    // @ts-expect-error: no such filter
    client.request('GET', '/v1/iam/users', { query: { nickname: 'ada' } }),
    // @ts-expect-error: no such status
    client.request('GET', '/v1/iam/users', { query: { status: 'asleep' } }),
    // @ts-expect-error: a body is needed
    client.request('POST', '/v1/iam/users'),
    // @ts-expect-error: with a name
    client.request('POST', '/v1/iam/users', { body: { email: 'ada@example.com' } }),
    // @ts-expect-error: and no member besides
    client.users.create({ email: 'ada@example.com', name: 'Ada', nickname: 'ada' }),
    // @ts-expect-error: the client's own session is not a call
    client.request('POST', '/v1/auth/login', { body: { email: 'a', password: 'b' } }),
    // @ts-expect-error: not a list
    client.pages('/v1/auth/me'),
  ];
}

it('a call takes what its operation takes, and gives what that answers', () => {
  expect(calls).toBeTypeOf('function');
  expectTypeOf<Awaited<ReturnType<Client['users']['get']>>>().toEqualTypeOf<User>();
  expectTypeOf<Awaited<ReturnType<Client['users']['delete']>>>().toEqualTypeOf<undefined>();
  expectTypeOf<Row<'/v1/iam/users'>>().toEqualTypeOf<User>();
});
