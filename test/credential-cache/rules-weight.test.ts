import { describe, expect, test } from 'vitest';
import { weightOfPolicies, weightOfTenant } from '../../src/credential-cache/rules-weight.ts';
import type { PolicyConditions } from '../../src/decision/condition-table.ts';
import { makeId, parsePolicyName, parseTenantId } from '../../src/domain/ids.ts';
import type { BudgetRecord, PolicyRecord, TenantRecord } from '../../src/domain/records.ts';
import { finish } from '../../src/domain/steps.ts';
import { must } from '../support/world.ts';

function weightOf(conditions: PolicyConditions): number {
  const policy: PolicyRecord = {
    name: must(parsePolicyName('office'), 'policy name'),
    effect: 'deny',
    actions: ['*'],
    resources: ['*'],
    conditions,
    appliesTo: 'everyone',
    attachedRoles: [],
    enabled: true,
  };
  return finish(weightOfPolicies([policy]));
}

/** Bytes per entry that bench/micro/rules.ts measures for lists of the largest size, rounded up. */
describe('the estimated memory of a policy is at least what its lists take', () => {
  const always = weightOf({});
  const list = (count: number, text: string) => Array.from({ length: count }, () => text);

  test.each<[string, PolicyConditions, number]>([
    ['84 weekly windows', { weekly_hours: { in: list(84, 'Mon-Sun 08:00-18:00') } }, 84 * 80],
    [
      '84 weekly windows of both operators',
      { weekly_hours: { in: list(84, 'Mon 08:00-18:00'), not_in: list(84, 'Tue 08:00-18:00') } },
      168 * 80,
    ],
    ['1,000 days', { day_of_week: { not_in: Array.from({ length: 1000 }, () => 'Sat' as const) } }, 1000 * 8],
    ['1,000 networks', { ip_address: { in: list(1000, '10.0.0.1') } }, 1000 * 180],
  ])('%s', (_what, conditions, bytes) => {
    expect(weightOf(conditions) - always).toBeGreaterThanOrEqual(bytes);
  });
});

describe('the estimated memory of a tenant', () => {
  const tenant: TenantRecord = {
    ...{
      id: must(parseTenantId('acme'), 'tenant id'),
      status: 'active',
      settings: {},
      quotas: {},
      roles: [],
      policies: [],
    },
  };
  const bytesOf = (parts: Partial<TenantRecord>): number =>
    finish(weightOfTenant({ ...tenant, ...parts })) - finish(weightOfTenant(tenant));

  // bench/micro/budget-memory.ts measures 661 bytes for each.
  test('counts its budgets and their lists', () => {
    const budget: BudgetRecord = {
      ...{
        id: makeId('bud', 0, Buffer.alloc(10)),
        name: 'team',
        unit: 'money',
        limit: 1,
        period: 'day',
        timezone: undefined,
      },
      ...{ appliesTo: { tenant: true }, per: 'all', models: undefined, action: 'block', epoch: 0 },
    };
    const ids = Array.from({ length: 500 }, (_none, i) => makeId('key', i, Buffer.alloc(10)));
    expect(bytesOf({ budgets: Array.from({ length: 1000 }, () => budget) })).toBeGreaterThanOrEqual(1000 * 661);
    expect(bytesOf({ budgets: [{ ...budget, appliesTo: { keys: ids } }] })).toBeGreaterThanOrEqual(500 * 31);
  });

  test('counts its limits by model', () => {
    const models = Array.from({ length: 16 }, (_none, i) => `${i}`.padEnd(256, 'x'));
    expect(bytesOf({ settings: { rate_limits: [{ models, parallel: 1 }] } })).toBeGreaterThanOrEqual(16 * 256);
  });
});
