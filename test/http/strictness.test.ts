/** Every route rejects unknown parameters and members, so that no typing error is ignored. */

import { describe, expect, test } from 'vitest';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { type Harness, it, outcome } from './harness.ts';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

const pathOf = ({ path }: Endpoint) => path.replace(/:\w+/g, 'x');
const call = (route: Endpoint, query: string, body?: unknown) => {
  const raw = body === undefined ? '' : JSON.stringify(body);
  const type = route.form ? 'application/x-www-form-urlencoded' : 'application/json';
  const headers = { 'content-type': type, 'content-length': String(raw.length) };
  return h.api(route.method, pathOf(route) + query, { as: h.root.token, raw, headers });
};
const known = ({ querySchema }: Endpoint): readonly string[] =>
  'properties' in querySchema && typeof querySchema.properties === 'object' && querySchema.properties !== null
    ? Object.keys(querySchema.properties)
    : [];

/** The clients of a form belong to others, so its unknown members are ignored (RFC 6749, section 3.2). */
const takesJson = ({ method, form }: Endpoint) => method !== 'GET' && !form;

/** Runs for every route, and lists those that fail by name. */
async function sweep(
  routes: (route: Endpoint) => boolean,
  answers: (route: Endpoint) => Promise<string>,
): Promise<void> {
  const swept = h.routes.filter(routes);
  expect(swept.length).toBeGreaterThan(5);
  const wrong: string[] = [];
  for (const route of swept) {
    const answer = await answers(route);
    if (answer !== '') wrong.push(`${route.method} ${route.path}: ${answer}`);
  }
  expect(wrong).toEqual([]);
}

describe('every route', () => {
  test('refuses an unknown query parameter', () =>
    sweep(
      // Providers may add parameters to a redirect (RFC 6749, section 4.1.2).
      (route) => route.operationId !== 'finishSso',
      async (route) => {
        const reply = await call(route, '?no_such=1');
        return outcome(reply) === '400 invalid_parameter' ? '' : outcome(reply);
      },
    ));

  test('refuses a parameter that differs from its own only in case', () =>
    sweep(
      (route) => known(route).length > 0,
      async (route) => {
        const outcomes = [];
        for (const name of known(route)) outcomes.push(outcome(await call(route, `?${name.toUpperCase()}=1`)));
        return outcomes.filter((one) => one !== '400 invalid_parameter').join();
      },
    ));

  test('refuses each of its parameters when it is repeated', () =>
    sweep(
      (route) => known(route).length > 0,
      async (route) => {
        const outcomes = [];
        for (const name of known(route)) {
          const answered = outcome(await call(route, `?${name}=1&${name}=1`));
          // It has the meaning of `X-Tenant-ID`.
          const expected = name === 'tenant_id' ? '400 invalid_tenant' : '400 invalid_parameter';
          if (answered !== expected) outcomes.push(`${name} ${answered}`);
        }
        return outcomes.join();
      },
    ));

  test('that takes a body refuses an unknown member of it by its name', () =>
    sweep(takesJson, async (route) => {
      const reply = await call(route, '', { no_such: 1 });
      const named = JSON.stringify(reply.json['errors'] ?? []).includes('"/no_such"');
      return outcome(reply) === '422 invalid_field' && named ? '' : `${outcome(reply)} ${reply.text}`;
    }));

  test.each([
    ['a list', []],
    ['null', null],
    ['a text', 'x'],
    ['a number', 1],
  ])('refuses a body that is %s', (_name, body) =>
    sweep(takesJson, async (route) => {
      const reply = await call(route, '', body);
      return outcome(reply) === '422 invalid_field' ? '' : outcome(reply);
    }),
  );
});
