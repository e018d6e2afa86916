/** At most 16 budgets count one request. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { budgetsOf, compileBudgets } from '../../src/decision/budgets.ts';
import { makeId, parseTenantId, type RoleName, type TenantId } from '../../src/domain/ids.ts';
import { budgetRecord } from '../../src/iam/budgets/entity.ts';
import { enabledBudgets } from '../../src/iam/budgets/queries.ts';
import { selectionsOfCallers } from '../../src/iam/budgets/state-queries.ts';
import { SEED } from '../support/properties.ts';
import { type Harness, it, outcome, type Person, text, unique } from './harness.ts';

const BUDGETS = '/v1/iam/budgets';

let h: Harness;
it.beforeAll(({ harness }) => {
  h = harness;
});

async function tenantOf(name: string): Promise<{ id: TenantId; boss: Person }> {
  const id = parseTenantId(unique(name));
  if (id === undefined) throw new Error('no tenant id');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  return { id, boss: await h.person(id, ['tenant-admin']) };
}

describe('a write after which 17 budgets would count one request', () => {
  const body = (name: string, members: object) => ({
    name,
    unit: 'tokens',
    limit: 1,
    period: 'day',
    applies_to: { tenant: true },
    ...members,
  });
  const key = (boss: Person, members: object) =>
    h.api('POST', '/v1/iam/api-keys', {
      as: boss.token,
      body: { description: 'k', scopes: ['chat:read'], expires_in_days: 1, ...members },
    });

  test('is refused: of a budget, a key, its metadata, a role of a user; and its twin with 16 is not', async () => {
    const { id: tenant, boss } = await tenantOf('full');
    const make = (name: string, members: object) =>
      h.api('POST', BUDGETS, { as: boss.token, body: body(name, members) });
    const [free, owner] = [await h.person(tenant, []), await h.person(tenant, [])];
    for (let i = 0; i < 14; i++) expect(outcome(await make(`of-all-${i}`, {}))).toBe('201');
    expect(outcome(await make('of-role', { applies_to: { roles: ['developer'] } }))).toBe('201');
    expect(outcome(await make('of-owner', { applies_to: { users: [owner.id] } }))).toBe('201');
    const team = await make('of-team', { applies_to: { metadata: { team: 'a' } } });
    expect(outcome(team)).toBe('201');

    expect(outcome(await key(boss, { user_id: owner.id, metadata: { team: 'b' } }))).toBe('201');
    const owned = await key(boss, { user_id: owner.id });
    const paths = [`/v1/iam/users/${owner.id}`, `/v1/iam/users/${free.id}`];
    const roles = (path: string) => h.api('PATCH', path, { as: boss.token, body: { roles: ['developer'] } });
    expect(outcome(await roles(paths[0] ?? ''))).toBe('200');

    expect(outcome(await key(boss, { user_id: owner.id, metadata: { team: 'a' } }))).toBe('409 quota_exceeded');
    const path = `/v1/iam/api-keys/${text(owned.json, 'id')}`;
    const changed = await h.api('PATCH', path, { as: boss.token, body: { metadata: { team: 'a' } } });
    expect(outcome(changed)).toBe('409 quota_exceeded');
    expect(outcome(await make('one-more', {}))).toBe('409 quota_exceeded');
    expect(outcome(await make('one-more', { enabled: false }))).toBe('201');
    const free17 = await key(boss, { user_id: free.id, metadata: { team: 'a' } });
    expect(outcome(free17)).toBe('201');
    expect(outcome(await make('of-free', { applies_to: { users: [free.id] } }))).toBe('201');
    expect(outcome(await roles(paths[1] ?? ''))).toBe('409 quota_exceeded');
    const several = { action: 'add_role', role: 'developer', ids: [free.id] };
    expect((await h.api('POST', '/v1/iam/users/change', { as: boss.token, body: several })).json).toMatchObject({
      changed: 0,
      data: [{ outcome: 'rejected', code: 'quota_exceeded' }],
    });
    // A change that selects no more callers or models passes.
    const narrower = { limit: 2 };
    expect(
      outcome(await h.api('PATCH', `${BUDGETS}/${text(team.json, 'id')}`, { as: boss.token, body: narrower })),
    ).toBe('200');
  });

  test('counts budgets of different models apart, and those with globs that a name may match together', async () => {
    const { boss } = await tenantOf('models');
    const make = (name: string, models: readonly string[]) =>
      h.api('POST', BUDGETS, { as: boss.token, body: body(name, { models }) });
    for (let i = 0; i < 20; i++) expect(outcome(await make(`model-${i}`, [`m-${i}`, `m-${i + 1}`]))).toBe('201');
    for (let i = 0; i < 14; i++) {
      expect(outcome(await make(`beginning-${i}`, [`${'m-3'.slice(0, 1 + (i % 3))}*`]))).toBe('201');
      expect(outcome(await make(`other-${i}`, [`gpt-${i}-*`, `claude-${i}-*`]))).toBe('201');
    }
    expect(outcome(await make('one-more', ['m-3']))).toBe('409 quota_exceeded');
    expect(outcome(await make('one-more', ['*-3']))).toBe('409 quota_exceeded');
    expect(outcome(await make('one-more', ['gpt-0-mini', 'm-0']))).toBe('201');
    // Of all models, it is the 17th with m-3, and the second with a model of one of the other families.
    expect(outcome(await make('another', ['*']))).toBe('409 quota_exceeded');
    expect(outcome(await make('another', ['gpt-*', 'claude-*']))).toBe('201');
  });
});

test('a write compares a bounded number of sets of budgets, and each different one once', async () => {
  const { id: tenant, boss } = await tenantOf('many');
  const owner = await h.person(tenant, []);
  const now = Date.now();
  const budget = (name: string, applies_to: object, models: readonly string[]) => ({
    id: makeId('bud', now, randomBytes(10)),
    tenant_id: tenant,
    ...{ name, unit: 'tokens', limit_amount: 1, period: 'day', applies_to: JSON.stringify(applies_to), models },
  });
  const keys = Array.from({ length: 400 }, () => ({
    ...{ id: makeId('key', now, randomBytes(10)), tenant_id: tenant, user_id: owner.id, description: 'k' },
    ...{ scopes: ['chat:read'], metadata: { team: 'a' }, digest: randomBytes(32), prefix: 'p', last_four: 'abcd' },
    created_by: boss.id,
  }));
  await h.db.knex('api_keys').insert(keys);
  const globs = (i: number) => Array.from({ length: 8 }, (_, j) => `${i}-${j}-*-end`);
  await h.db
    .knex('budgets')
    .insert(Array.from({ length: 17 }, (_, i) => budget(`all-${i}`, { tenant: true }, globs(i))));
  const ofKeys = (from: number, to: number) =>
    h.db
      .knex('budgets')
      .insert(
        keys.slice(from, to).map(({ id }, i) => budget(`key-${from + i}`, { keys: [id] }, [`model-${from + i}`])),
      );
  const createOne = async () => {
    const made = { ...{ name: unique('b'), unit: 'tokens', limit: 1, period: 'day' }, models: ['one-more'] };
    const applies_to = { users: [owner.id] };
    return outcome(await h.api('POST', BUDGETS, { as: boss.token, body: { ...made, applies_to } }));
  };
  const path = `/v1/iam/users/${owner.id}`;
  const roles = async (role: string) =>
    outcome(await h.api('PATCH', path, { as: boss.token, body: { roles: [role] } }));

  // 400 keys with one set.
  expect(await roles('developer')).toBe('200');
  await ofKeys(0, 200);
  expect(await createOne()).toBe('201');
  expect(await roles('analyst')).toBe('200');
  await ofKeys(200, 400);
  expect(await createOne()).toBe('409 quota_exceeded');
  expect(await roles('developer')).toBe('409 quota_exceeded');
});

test('the statement on all callers finds the sets of budgets that the decision finds caller by caller', async () => {
  const { id: tenant, boss } = await tenantOf('sets');
  const count = 1000;
  const seed = SEED === undefined ? {} : { seed: SEED };
  const choices =
    fc.sample(fc.array(fc.nat(), { minLength: count, maxLength: count }), { numRuns: 1, ...seed })[0] ?? [];
  let chosen = 0;
  const randomInt = (below: number): number => (choices[chosen++ % count] ?? 0) % below;
  const id = <P extends 'usr' | 'key' | 'bud'>(prefix: P) => makeId(prefix, Date.now(), randomBytes(10));
  const pick = <T>(list: readonly T[]): T[] => list.filter(() => randomInt(3) === 0);
  const roles = ['developer', 'analyst', 'auditor'];
  const users: (Person & { readonly roles: readonly RoleName[] })[] = [];
  for (let i = 0; i < 6; i++) {
    const of = pick(roles);
    users.push({ ...(await h.person(tenant, of)), roles: of as RoleName[] });
  }
  const keys = Array.from({ length: 12 }, () => ({
    id: id('key'),
    user: randomInt(2) === 0 ? undefined : users[randomInt(users.length)],
    metadata: Object.fromEntries(pick(['a', 'b', 'c']).map((name) => [name, String(randomInt(2))])),
  }));
  for (const key of keys) {
    await h.db.knex('api_keys').insert({
      id: key.id,
      tenant_id: tenant,
      user_id: key.user?.id ?? null,
      description: 'k',
      scopes: ['chat:read'],
      metadata: key.metadata,
      digest: randomBytes(32),
      prefix: 'p',
      last_four: 'abcd',
      created_by: boss.id,
    });
  }
  const scopes = [
    () => ({ keys: [keys[0]?.id, ...pick(keys).map((key) => key.id)] }),
    () => ({ users: [users[0]?.id, ...pick(users).map((user) => user.id)] }),
    () => ({ roles: ['analyst', ...pick(roles)] }),
    () => ({ metadata: { [pick(['a', 'b'])[0] ?? 'c']: String(randomInt(2)) } }),
  ];
  for (let i = 0; i < 25; i++) {
    await h.db.knex('budgets').insert({
      id: id('bud'),
      tenant_id: tenant,
      name: `budget-${i}`,
      unit: 'tokens',
      limit_amount: 1,
      period: 'day',
      applies_to: JSON.stringify(scopes[randomInt(scopes.length)]?.()),
      enabled: randomInt(5) > 0,
    });
  }
  const index = compileBudgets((await enabledBudgets(h.db.knex, tenant)).map(budgetRecord));
  const none = { keyId: undefined, metadata: undefined } as const;
  const callers = [
    { ...none, userId: boss.id, roles: ['tenant-admin' as RoleName] },
    ...users.map((user) => ({ ...none, userId: user.id, roles: user.roles })),
    ...keys.map((key) => ({
      keyId: key.id,
      userId: key.user?.id,
      roles: key.user?.roles ?? [],
      metadata: key.metadata,
    })),
  ];
  for (const most of [0, 3, 6]) {
    const naive = new Set(
      callers
        .map((caller) => budgetsOf(index, caller).map((budget) => budget.id))
        .filter((ids) => ids.length > most)
        .map((ids) => ids.toSorted().join()),
    );
    const found = (await selectionsOfCallers(h.db.knex, tenant, most, 1000)).map((ids) => ids.toSorted().join());
    expect(new Set(found)).toEqual(naive);
    expect(found).toHaveLength(naive.size);
  }
});
