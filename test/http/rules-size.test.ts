/** What the roles and policies of one tenant may take of the memory that all tenants share. */

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

/** About 450 KB. */
const many = (i: number): readonly string[] => Array.from({ length: 1000 }, (_none, n) => `models/${i}-${n}-${'x'.repeat(440)}`);

test('are bounded together: what would pass 4 MiB is refused and leaves no trace, and what takes less is still taken', async () => {
  const policy = (i: number, resources = many(i)) => ({ name: `big-${i}`, effect: 'deny', actions: ['chat:write'], resources });
  const make = async (i: number) => outcome(await h.api('POST', '/v1/iam/policies', { as: boss.token, body: policy(i) }));
  const outcomes: string[] = [];
  for (let i = 0; i < 10; i++) outcomes.push(await make(i));
  expect(outcomes).toEqual([...Array.from({ length: 9 }, () => '201'), '409 quota_exceeded']);
  expect(outcome(await h.api('GET', '/v1/iam/policies/big-9', { as: boss.token }))).toBe('404 not_found');

  const role = (constraints: readonly string[]) => ({
    name: `role-${constraints.length}`,
    permissions: ['chat:write'],
    resource_constraints: { models: constraints },
  });
  const names = many(0).map((name) => name.replace('models/', ''));
  expect(outcome(await h.api('POST', '/v1/iam/roles', { as: boss.token, body: role(names) }))).toBe('409 quota_exceeded');
  expect(outcome(await h.api('POST', '/v1/iam/roles', { as: boss.token, body: role(['phi-3']) }))).toBe('201');

  const grown = { resources: [...many(0).slice(0, 999), `models/${'y'.repeat(500)}`] };
  expect(outcome(await h.api('PUT', '/v1/iam/policies/big-0', { as: boss.token, body: grown }))).toBe('200');
  expect(outcome(await h.api('PUT', '/v1/iam/policies/big-0', { as: boss.token, body: { resources: ['models/phi-3'] } }))).toBe(
    '200',
  );
  expect(await make(9)).toBe('201');
});

test('do not keep the answer of a request from being given again when they are full', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'full', name: 'Full' } });
  const { token } = await h.person('full', ['tenant-admin']);
  const make = (i: number, headers: Record<string, string> = {}) =>
    h.api('POST', '/v1/iam/policies', {
      as: token,
      headers,
      body: { name: `big-${i}`, effect: 'deny', actions: ['chat:write'], resources: many(i) },
    });
  for (let i = 0; i < 8; i++) expect(outcome(await make(i))).toBe('201');
  expect(outcome(await make(8, { 'idempotency-key': 'the ninth' }))).toBe('201');
  expect(outcome(await h.api('DELETE', '/v1/iam/policies/big-8', { as: token }))).toBe('204');
  expect(outcome(await make(9))).toBe('201');
  expect(outcome(await make(8))).toBe('409 quota_exceeded');
  const again = await make(8, { 'idempotency-key': 'the ninth' });
  expect([outcome(again), again.headers['idempotency-replayed']]).toEqual(['201', 'true']);
});

test('take nothing from another tenant', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'frugal', name: 'Frugal' } });
  const other = await h.person('frugal', ['tenant-admin']);
  const body = { name: 'modest', effect: 'deny', actions: ['chat:write'], resources: ['models/phi-3'] };
  expect(outcome(await h.api('POST', '/v1/iam/policies', { as: other.token, body }))).toBe('201');
});
