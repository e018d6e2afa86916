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
  const headers =
    body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(raw.length) };
  return h.api(route.method, pathOf(route) + query, { as: h.root.token, raw, headers });
};
const known = ({ querySchema }: Endpoint): readonly string[] =>
  'properties' in querySchema && typeof querySchema.properties === 'object' && querySchema.properties !== null
    ? Object.keys(querySchema.properties)
    : [];

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
      () => true,
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
        for (const name of known(route)) outcomes.push(`${name} ${outcome(await call(route, `?${name}=1&${name}=1`))}`);
        return outcomes.filter((one) => !one.endsWith(' 400 invalid_parameter')).join();
      },
    ));

  test('that takes a body refuses an unknown member of it by its name', () =>
    sweep(
      (route) => route.method !== 'GET',
      async (route) => {
        const reply = await call(route, '', { no_such: 1 });
        const named = JSON.stringify(reply.json['errors'] ?? []).includes('"/no_such"');
        return outcome(reply) === '422 invalid_field' && named ? '' : `${outcome(reply)} ${reply.text}`;
      },
    ));

  test.each([
    ['a list', []],
    ['null', null],
    ['a text', 'x'],
    ['a number', 1],
  ])('refuses a body that is %s', (_name, body) =>
    sweep(
      (route) => route.method !== 'GET',
      async (route) => {
        const reply = await call(route, '', body);
        return outcome(reply) === '422 invalid_field' ? '' : outcome(reply);
      },
    ),
  );
});
