/** The limit of the memory that roles and policies of one tenant take, because all tenants share it. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, outcome, type Person, startHarness } from './harness.ts';

let h: Harness;
let boss: Person;
beforeAll(async () => {
  h = await startHarness();
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'greedy', name: 'Greedy' } });
  boss = await h.person('greedy', ['tenant-admin']);
});
afterAll(async () => {
  await h.close();
});

/**
 * 48,201 bytes as stored; with the policy's other members 48,350 or so: 21 such policies fit into 1 MiB, and 22 do not.
 */
const many = (i: number): readonly string[] =>
  Array.from({ length: 200 }, (_none, n) => `models/${i}-${n}-`.padEnd(240, 'x'));
const FIT = 21;

test('the rules of one tenant are bounded together: a write beyond 1 MiB is refused and leaves no trace, a smaller one is taken', async () => {
  const policy = (i: number, resources = many(i)) => ({
    name: `big-${i}`,
    effect: 'deny',
    actions: ['chat:write'],
    resources,
  });
  const make = async (i: number) =>
    outcome(await h.api('POST', '/v1/iam/policies', { as: boss.token, body: policy(i) }));
  const outcomes: string[] = [];
  for (let i = 0; i <= FIT; i++) outcomes.push(await make(i));
  expect(outcomes).toEqual([...Array.from({ length: FIT }, () => '201'), '409 quota_exceeded']);
  expect(outcome(await h.api('GET', `/v1/iam/policies/big-${FIT}`, { as: boss.token }))).toBe('404 not_found');

  const role = (name: string, constraints: object) => ({
    name,
    permissions: ['chat:write'],
    resource_constraints: constraints,
  });
  const names = many(0)
    .slice(0, 200)
    .map((name) => name.replace('models/', ''));
  const large = { models: names, collections: names, agents: names };
  expect(outcome(await h.api('POST', '/v1/iam/roles', { as: boss.token, body: role('large', large) }))).toBe(
    '409 quota_exceeded',
  );
  expect(
    outcome(await h.api('POST', '/v1/iam/roles', { as: boss.token, body: role('small', { models: ['phi-3'] }) })),
  ).toBe('201');

  const grown = { resources: [...many(0).slice(0, 199), `models/${'y'.repeat(249)}`] };
  expect(outcome(await h.api('PUT', '/v1/iam/policies/big-0', { as: boss.token, body: grown }))).toBe('200');
  expect(
    outcome(await h.api('PUT', '/v1/iam/policies/big-0', { as: boss.token, body: { resources: ['models/phi-3'] } })),
  ).toBe('200');
  expect(await make(FIT)).toBe('201');
});

test('a full tenant still gets the stored answer to a repeated request', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'full', name: 'Full' } });
  const { token } = await h.person('full', ['tenant-admin']);
  const make = (i: number, headers: Record<string, string> = {}) =>
    h.api('POST', '/v1/iam/policies', {
      as: token,
      headers,
      body: { name: `big-${i}`, effect: 'deny', actions: ['chat:write'], resources: many(i) },
    });
  const last = FIT - 1;
  for (let i = 0; i < last; i++) expect(outcome(await make(i))).toBe('201');
  expect(outcome(await make(last, { 'idempotency-key': 'the last' }))).toBe('201');
  expect(outcome(await h.api('DELETE', `/v1/iam/policies/big-${last}`, { as: token }))).toBe('204');
  expect(outcome(await make(FIT))).toBe('201');
  expect(outcome(await make(last))).toBe('409 quota_exceeded');
  const again = await make(last, { 'idempotency-key': 'the last' });
  expect([outcome(again), again.headers['idempotency-replayed']]).toEqual(['201', 'true']);
});

test('a full tenant takes nothing from the bound of another tenant, nor of the global policies', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'frugal', name: 'Frugal' } });
  const other = await h.person('frugal', ['tenant-admin']);
  const body = { name: 'modest', effect: 'deny', actions: ['chat:write'], resources: ['models/phi-3'] };
  expect(outcome(await h.api('POST', '/v1/iam/policies', { as: other.token, body }))).toBe('201');
  const global = { ...body, name: 'for-all', global: true };
  expect(outcome(await h.api('POST', '/v1/iam/policies', { as: h.root.token, body: global }))).toBe('201');
});
