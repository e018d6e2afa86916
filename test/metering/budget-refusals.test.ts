import { describe, expect, test } from 'vitest';
import { compileGrant, compileTenant } from '../../src/decision/compile.ts';
import type { KeyPrincipal, TenantView } from '../../src/decision/model.ts';
import { compilePrices } from '../../src/decision/prices.ts';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import type { BudgetRecord, RateLimitRule } from '../../src/domain/records.ts';
import type { AdmissionRequest } from '../../src/metering/admission.ts';
import { usedOf } from './support/memory-store.ts';
import { TTL_MS, World } from './support/world.ts';

const ACME = parseTenantId('acme') ?? expect.fail();
const bytes = (n: number): Buffer => Buffer.alloc(10, n);
const KEY: KeyPrincipal = {
  ...{ kind: 'api_key', id: makeId('key', 0, bytes(1)), tenantId: ACME, owner: undefined },
  ...{ grant: compileGrant([], {}), rateLimitRpm: undefined },
};
const OTHER: KeyPrincipal = { ...KEY, id: makeId('key', 0, bytes(2)) };
/** A token of the prompt costs 3,000 and one of the answer 15,000 of 10^-9. */
const PRICES = compilePrices({
  version: 4,
  prices: [{ models: 'gpt-*', input: 3e9, output: 15e9, cachedInput: 1e9, cacheWrite: 4e9 }],
});

const budget = (name: string, parts: Partial<BudgetRecord>): BudgetRecord => ({
  ...{ id: makeId('bud', 0, bytes(name.charCodeAt(0))), name, unit: 'tokens', limit: 1000, period: 'day' },
  ...{ timezone: undefined, appliesTo: { tenant: true }, per: 'all', models: undefined, action: 'block', epoch: 0 },
  ...parts,
});

const tenantOf = (budgets: readonly BudgetRecord[], rateLimits: readonly RateLimitRule[] = []): TenantView =>
  compileTenant({
    ...{ id: ACME, status: 'active', settings: { rate_limits: rateLimits }, quotas: {}, roles: [], policies: [] },
    budgets,
  });

/** A world with one process, or more, and a function that sends a request for 10 tokens, and lets time pass. */
function worldOf(tenant: TenantView, processes = 1) {
  const world = new World(processes, () => 5);
  world.prices = PRICES;
  const send = async (parts: Partial<AdmissionRequest> = {}, process = 0): Promise<void> => {
    const principal = parts.principal ?? KEY;
    world.admit(process, {
      tenant,
      principal,
      keyId: principal.id,
      metered: true,
      askedTokens: 10,
      model: 'm',
      ...parts,
    });
    await world.live(300);
  };
  return { world, send };
}

const spentOf = (world: World): Record<string, number> =>
  Object.fromEntries([...world.store.budgets].map(([name, { spent }]) => [name.replace('acme ', ''), spent]));

describe('a budget of requests', () => {
  test('counts a request whose answer reports no usage, and one of tokens does not', async () => {
    const budgets = [budget('a', { unit: 'requests', limit: 2 }), budget('b', { limit: 1000 })];
    const { world, send } = worldOf(tenantOf(budgets));
    for (let i = 0; i < 3; i++) {
      await send({ metered: false, reportsUsage: true });
      for (const request of world.running.splice(0)) world.end(0, request, { responseBytes: 4000 });
      await world.live(1000);
    }
    expect(world.refusals).toMatchObject([{ code: 'insufficient_quota', budget: { name: 'a', spent: 2 } }]);
    expect([Object.values(spentOf(world)).toSorted(), world.admitted.length]).toEqual([[0, 2], 2]);
    expect(world.store.usage.size).toBe(0);
  });
});

describe('a refusal', () => {
  test('names the first budget by name that has no room, when it resets, and the amounts that are known', async () => {
    const budgets = [
      budget('c', { limit: 5 }),
      budget('b', { limit: 14, period: 'hour', per: 'key' }),
      budget('a', { limit: 1000, period: 'total' }),
    ];
    const { world, send } = worldOf(tenantOf(budgets.slice(1)));
    await send();
    await send();
    expect(world.refusals).toMatchObject([
      {
        code: 'insufficient_quota',
        resetsAt: '2026-11-21T13:00:00.000Z',
        detail: 'This request may spend more than the budget "b" has left. It resets at 2026-11-21T13:00:00.000Z.',
        budget: {
          ...{ id: budgets[1]?.id, name: 'b', unit: 'tokens', period: 'hour', own: true },
          ...{ resetsAt: '2026-11-21T13:00:00.000Z', limit: 14, spent: 0, reserved: 10, remaining: 4 },
        },
      },
    ]);
    // The key of another caller has an amount of its own.
    await send({ principal: OTHER, keyId: OTHER.id });
    expect(world.running.length).toBe(2);
  });

  test('of a request that needs more than the whole limit has the amounts, also if no request was counted before', async () => {
    const { world, send } = worldOf(tenantOf([budget('a', { limit: 9 })]), 2);
    await send();
    await send({ askedTokens: 5 });
    const [request] = world.running;
    if (request === undefined) throw new Error('the request within the limit was refused');
    world.end(0, request, { total: 4, model: 'm' });
    await world.live(1000);
    await send({}, 1);
    expect(world.refusals).toMatchObject([
      { budget: { limit: 9, spent: 0, reserved: 0, remaining: 9 } },
      { budget: { limit: 9, spent: 4, reserved: 0, remaining: 5 } },
    ]);
  });

  test('of a request that needs more than the whole limit needs no database', async () => {
    const { world, send } = worldOf(tenantOf([budget('a', { limit: 9 })]));
    world.storeUp = false;
    await send();
    await send();
    expect(world.refused).toEqual(['insufficient_quota', 'insufficient_quota']);
  });

  test("says when the budget resets in the tenant's new time zone, and the amount of the day stays", async () => {
    const budgets = [budget('a', { limit: 15 })];
    const { world, send } = worldOf(tenantOf(budgets));
    await send({ timezone: 'Europe/Berlin' });
    await send({ timezone: 'Europe/Berlin' });
    await send({ timezone: 'America/New_York', tenant: tenantOf(budgets) });
    expect(world.refusals).toMatchObject([
      { resetsAt: '2026-11-21T23:00:00.000Z' },
      { resetsAt: '2026-11-22T05:00:00.000Z' },
    ]);
  });

  test('of an exhausted budget also comes for a request that costs nothing, and for one that reports its usage later', async () => {
    const { world, send } = worldOf(tenantOf([budget('a', { unit: 'money', limit: 150_000, period: 'total' })]));
    await send({ model: 'gpt-1' });
    const [request] = world.running;
    if (request === undefined) throw new Error('the first request was refused');
    world.end(0, request, { total: 10, model: 'gpt-1' });
    await world.live(1000);
    await send({ model: 'free' });
    await send({ metered: false, reportsUsage: true });
    expect([world.refused, Object.values(spentOf(world))]).toEqual([
      ['insufficient_quota', 'insufficient_quota'],
      [150_000, 10],
    ]);
    expect(world.refusals[0]).toMatchObject({ resetsAt: undefined, budget: { spent: 150_000, remaining: 0 } });
  });

  test('reserves nothing in the other budgets', async () => {
    const { world, send } = worldOf(tenantOf([budget('a', { limit: 50 }), budget('b', { limit: 15, per: 'key' })]));
    await send();
    for (let i = 0; i < 5; i++) await send();
    // Four more keys fit into the shared budget.
    for (let i = 3; i < 9; i++) await send({ principal: { ...KEY, id: makeId('key', 0, bytes(i)) } });
    expect(world.running.length).toBe(5);
  });

  test('does not come from a budget that only reports, which is charged all the same', async () => {
    const { world, send } = worldOf(tenantOf([budget('a', { limit: 1, action: 'report' })]));
    await send();
    for (const request of [...world.running]) world.end(0, request, { total: 7 });
    await world.live(1000);
    expect([world.refused, Object.values(spentOf(world))]).toEqual([[], [7, 7]]);
  });
});

test('a request that more budgets count than its end can be booked to is a fault, and never admitted', async () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_none, i) => budget(`b${i}`, { id: makeId('bud', i, bytes(0)) }));
  for (const [count, running] of [
    [64, 1],
    [65, 0],
  ] as const) {
    const { world, send } = worldOf(tenantOf(many(count)));
    await send();
    expect([world.running.length, world.refused.length, world.faults]).toEqual([running, 0, 1 - running]);
  }
});

test('of requests that are sent at once, exactly those pass that fit, in one process or in three', async () => {
  for (const processes of [1, 3]) {
    const tenant = tenantOf([
      budget('a', { unit: 'money', limit: 450_000 }),
      budget('b', { limit: 1000 }),
      budget('c', { unit: 'requests', limit: 100 }),
    ]);
    const { world } = worldOf(tenant, processes);
    const parts = { tenant, principal: KEY, keyId: KEY.id, metered: true, askedTokens: 10, model: 'gpt-1' };
    // Each may cost 150,000.
    for (let i = 0; i < 9; i++) world.admit(i % processes, parts);
    await world.live(2000);
    expect([world.running.length, world.refused.length]).toEqual([3, 6]);
  }
});

test('a budget is spent to its end, also if the end of a request is booked while the next request asks the store', async () => {
  for (let gapMs = 0; gapMs <= 12; gapMs++) {
    const { world } = worldOf(tenantOf([]), 2);
    const admitted: number[] = [];
    for (let i = 0; i < 5; i++) {
      world.admit(0, { metered: true, monthlyTokens: 44, askedTokens: 10 });
      await world.live(300, 1);
      admitted.push(world.running.length);
      const request = world.running[i];
      if (request !== undefined) world.end(0, request, { total: 10 });
      await world.live(gapMs, 1);
    }
    expect([gapMs, admitted]).toEqual([gapMs, [1, 2, 3, 4, 4]]);
  }
});

test('an amount that a request spent admits no other one, in any unit, wherever the end of the request is reported', async () => {
  const limits = { money: 150_000, tokens: 10, requests: 1 } as const;
  for (const unit of ['money', 'tokens', 'requests'] as const) {
    for (const reporter of [0, 1]) {
      const tenant = tenantOf([budget('a', { unit, limit: limits[unit] })]);
      const { world, send } = worldOf(tenant, 2);
      await send({ model: 'gpt-1' });
      const [request] = world.running;
      if (request === undefined) throw new Error('the first request was refused');
      world.end(reporter, request, { total: 10, model: 'gpt-1' });
      for (let i = 0; i < 8; i++) {
        await world.live(100);
        world.admit(0, { tenant, principal: KEY, keyId: KEY.id, metered: true, askedTokens: 10, model: 'gpt-1' });
      }
      await world.live(300);
      expect([unit, reporter, world.running.length, world.refused.length]).toEqual([unit, reporter, 1, 8]);
    }
  }
});

test('the end of a request books each unit once, by the price at the check, with cached and written tokens apart', async () => {
  const budgets = [
    budget('a', { unit: 'money', limit: 1e9 }),
    budget('b', { unit: 'requests', per: 'key' }),
    budget('c', { period: 'week', models: ['gpt-*'] }),
    budget('d', { period: 'week', models: ['llama-*'] }),
  ];
  const { world, send } = worldOf(tenantOf(budgets));
  await send({ model: 'gpt-1' });
  world.prices = compilePrices({ version: 5, prices: [] });
  for (const request of world.running) {
    const usage = { prompt: 100, completion: 20, cached: 30, cacheWrite: 50, total: 120, model: 'gpt-1' };
    for (let i = 0; i < 2; i++) world.end(0, request, { usage, model: 'gpt-1', key: KEY.id });
  }
  await world.live(1500);
  const [a, b, c] = budgets.map(({ id }) => id);
  const cost = 20 * 3000 + 30 * 1000 + 50 * 4000 + 20 * 15_000;
  expect(spentOf(world)).toEqual({
    '2026-11': 120,
    [`${a} 2026-11-21#0`]: cost,
    [`${b}/${KEY.id} 2026-11-21#0`]: 1,
    [`${c} 2026-W47#0`]: 120,
  });
  expect(world.store.booked.get('price acme gpt-1 4')).toEqual({ requests: 1, tokens: 120, cost });
});

test('malformed charges are counted, and the usage is booked without them', async () => {
  const { world, send } = worldOf(tenantOf([budget('a', {})]));
  await send();
  for (const request of world.running) world.end(0, request, { total: 7, charges: 'tbud_1 2026-11#0' });
  await world.live(1000);
  expect([Object.values(spentOf(world)), world.processes[0]?.limits.stats.unknownCharges]).toEqual([[0, 7], 1]);
});

test('a budget that is reset, or whose period changes, begins with its whole amount while requests run', async () => {
  const { world } = worldOf(tenantOf([]));
  const parts = { principal: KEY, keyId: KEY.id, metered: true, askedTokens: 10, model: 'm' };
  for (const [epoch, period] of [
    [0, 'day'],
    [1, 'day'],
    [2, 'month'],
  ] as const) {
    const tenant = tenantOf([budget('a', { limit: 25, epoch, period })]);
    for (let i = 0; i < 3; i++) world.admit(0, { ...parts, tenant });
    await world.live(1000);
  }
  expect([world.running.length, world.refused.length]).toEqual([6, 3]);
  for (const request of world.running) world.end(0, request, { total: 9 });
  await world.live(1500);
  expect(Object.values(spentOf(world)).sort()).toEqual([18, 18, 18, 54]);
});

test('a raised limit admits at once, and a lowered one refuses at once', async () => {
  const { world } = worldOf(tenantOf([]));
  const parts = { principal: KEY, keyId: KEY.id, metered: true, askedTokens: 10, model: 'm' };
  for (const limit of [20, 20, 30, 20, 40]) {
    world.admit(0, { ...parts, tenant: tenantOf([budget('a', { limit })]) });
    await world.live(150);
  }
  world.admit(0, { ...parts, tenant: tenantOf([budget('a', { limit: 40 })]) });
  await world.live(150);
  expect([world.running.length, world.refused.length]).toEqual([4, 2]);
});

describe('places of parallel requests', () => {
  const rules = [
    { models: ['*'], parallel: 5 },
    { models: ['gpt-*'], parallel: 2 },
  ];

  test('are those of the most specific rule, are refused with the limit, and come back with the end', async () => {
    const { world, send } = worldOf(tenantOf([], rules), 2);
    for (let i = 0; i < 3; i++) await send({ model: 'gpt-1' }, i % 2);
    for (let i = 0; i < 6; i++) await send({ model: 'm' }, i % 2);
    expect(world.running.length).toBe(7);
    expect(world.refusals[0]).toMatchObject({
      ...{ code: 'rate_limit_exceeded', rate: undefined, retryAfterSeconds: 1 },
      limit: { level: 'tenant', models: ['gpt-*'], dimension: 'parallel' },
    });
    const [first, second] = world.running.splice(0, 2);
    if (first === undefined || second === undefined) throw new Error('two requests run');
    world.end(1, first, { total: 3 });
    second.process?.limits.release(second.reservation);
    await world.live(1500);
    for (let i = 0; i < 3; i++) await send({ model: 'gpt-1' }, i % 2);
    expect(world.running.length).toBe(7);
    expect(
      Object.keys(spentOf(world)).filter((name) => name.startsWith('parallel') && spentOf(world)[name] !== 0),
    ).toEqual([]);
  });

  test('that are taken refuse before a budget: one that is too small for the request, and one that is known to be empty', async () => {
    const codes = async (budgets: readonly BudgetRecord[], asked: number, rule: RateLimitRule): Promise<unknown> => {
      const { world, send } = worldOf(tenantOf(budgets, [rule]), 2);
      for (let i = 0; i < 2; i++) await send({ model: 'gpt-1' });
      await send({ model: 'm' }, 1);
      for (const process of [0, 1]) await send({ model: 'gpt-1', askedTokens: asked }, process);
      return [world.running.length, world.refused];
    };
    const taken = { models: ['gpt-*'], parallel: 2 };
    const [rate, quota] = ['rate_limit_exceeded', 'insufficient_quota'];
    const small = budget('a', { limit: 200 });
    const empty = budget('a', { limit: 20 });
    expect(await codes([small], 1000, taken)).toEqual([3, [rate, rate]]);
    expect(await codes([empty], 10, taken)).toEqual([2, [quota, rate, rate]]);
    // A free place is free again after the refusal.
    const free = { models: ['gpt-*'], parallel: 3 };
    expect(await codes([small], 1000, free)).toEqual([3, [quota, quota]]);
    expect(await codes([empty], 10, free)).toEqual([2, [quota, quota, quota]]);
  });

  test('come back when a request is not reported as running for the lifetime of a reservation', async () => {
    const { world, send } = worldOf(tenantOf([], rules));
    for (let i = 0; i < 2; i++) await send({ model: 'gpt-1' });
    const [kept] = world.running;
    for (let passed = 0; passed < TTL_MS + 2000; passed += 2000) {
      if (kept !== undefined) world.renew(0, kept);
      await world.live(2000, 500);
    }
    for (let i = 0; i < 2; i++) await send({ model: 'gpt-1' });
    expect([world.running.length, world.refused.length]).toEqual([3, 1]);
    await world.live(2 * TTL_MS, 500);
    expect([...world.store.budgets].map(([, row]) => usedOf(row))).toEqual([0]);
  });

  test('of a process that died are free for the others after the lifetime of a reservation', async () => {
    const { world, send } = worldOf(tenantOf([], [{ models: ['*'], parallel: 2 }]), 2);
    for (let i = 0; i < 2; i++) await send();
    world.crash(0);
    await world.live(TTL_MS - 2000, 500);
    await send({}, 1);
    expect(world.refused).toEqual(['rate_limit_exceeded']);
    await world.live(3000, 500);
    void world.processes[1]?.limits.tidy();
    await world.live(1000);
    await send({}, 1);
    expect(world.refused).toEqual(['rate_limit_exceeded']);
  });
});
