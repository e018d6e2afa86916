/** Endpoints say which resource their path names. */

import { expect, test } from 'vitest';
import { callerEndpoint } from '../../src/http/endpoint.ts';
import { describedEndpoints } from '../../src/iam/api-routes.ts';

const WITHOUT_TARGET = [
  // The parameter of a decision's request names no resource of the audit log.
  '/v1/iam/decisions/recent/:request_id',
  // No principal sends these requests. Their audit rows name the user, or the issuer if it exists.
  ...['start', 'callback', 'backchannel-logout'].map((step) => `/v1/auth/sso/:id/${step}`),
];

test('each endpoint with a path parameter has a target, whose id is its first parameter', () => {
  const withParameters = describedEndpoints().filter(({ path }) => path.includes(':'));
  expect(withParameters.length).toBeGreaterThan(30);
  for (const { path, target } of withParameters) {
    const expected = WITHOUT_TARGET.includes(path) ? undefined : /:(\w+)/.exec(path)?.[1];
    expect([path, target?.param]).toEqual([path, expected]);
  }
});

test('a target whose parameter is not in the path is rejected when the endpoint is created', () => {
  const create = () =>
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/users/:user',
      target: { type: 'user', param: 'id' },
      operationId: 'getUser',
      summary: 'Get a user.',
      permission: 'admin:users',
      answers: {},
      handler: async () => ({ status: 204 }),
    });
  expect(create).toThrow('/v1/iam/users/:user has no parameter id');
});
