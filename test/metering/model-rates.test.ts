/** Limits by model, through the admission of a check and the end of its request. */

import { describe, expect, test } from 'vitest';
import { compileGrant, compileTenant } from '../../src/decision/compile.ts';
import type { Principal } from '../../src/decision/model.ts';
import { makeId, parseTenantId } from '../../src/domain/ids.ts';
import type { RateLimitRule } from '../../src/domain/records.ts';
import type { AdmissionRequest, LimitDecision } from '../../src/metering/admission.ts';
import { type Running, TTL_MS, World } from './support/world.ts';

const ACME = parseTenantId('acme');
const USER = makeId('usr', 0, Buffer.alloc(10, 1));
const KEY = makeId('key', 0, Buffer.alloc(10, 2));

interface Rules {
  readonly tenant?: readonly RateLimitRule[];
  readonly user?: readonly RateLimitRule[];
  readonly key?: readonly RateLimitRule[];
}

/** A request with a key that a user owns. */
function requestWith(rules: Rules): Partial<AdmissionRequest> {
  const settings = rules.tenant === undefined ? {} : { rate_limits: rules.tenant };
  if (ACME === undefined) throw new Error('acme is no tenant id');
  const tenant = compileTenant({ id: ACME, status: 'active', settings, quotas: {}, roles: [], policies: [] });
  const principal: Principal = {
    ...{ kind: 'api_key', id: KEY, tenantId: tenant.id, grant: compileGrant(['*'], {}), rateLimitRpm: undefined },
    owner: { id: USER, roles: [], rateLimits: rules.user },
    rateLimits: rules.key,
  };
  return { tenant, principal, tenantId: tenant.id, keyId: KEY, userId: USER, model: 'llama-3', metered: true };
}

async function settled(world: World): Promise<void> {
  for (let i = 0; i < 3; i++) await world.live(400);
}

function lastRefusal(world: World): LimitDecision | undefined {
  return world.refusals.at(-1);
}

describe('a limit by model', () => {
  test('of requests per minute refuses beyond it and names level and models, and other models are not limited', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const rules = [{ models: ['llama-*', 'phi'], requests_per_minute: 2 }];
    const request = requestWith({ user: rules });
    for (const model of ['llama-3', 'phi', 'llama-2', 'other', undefined]) world.admit(0, { ...request, model });
    await settled(world);
    expect([world.running.length, world.refused]).toEqual([4, ['rate_limit_exceeded']]);
    expect(lastRefusal(world)).toMatchObject({
      detail: expect.stringMatching(
        /^The owner of this API key may send 2 requests per minute for the models llama-\*, phi\. Try again in \d+ s\.$/,
      ),
      rate: { limit: 2, remaining: 0 },
      limit: { level: 'user', models: ['llama-*', 'phi'], dimension: 'requests_per_minute' },
    });
  });

  test('of requests counts only requests that spend tokens or report their usage', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const request = requestWith({ key: [{ models: ['*'], requests_per_minute: 1 }] });
    for (let i = 0; i < 3; i++) world.admit(0, { ...request, metered: false, readsResponse: true });
    for (let i = 0; i < 3; i++) world.admit(0, { ...request, metered: false, reportsUsage: true });
    await settled(world);
    expect([world.running.length, world.refused.length]).toEqual([4, 2]);
  });

  test('of tokens per minute has the room that the end of a request leaves, and a long answer does not block it for minutes', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const request = requestWith({ key: [{ models: ['*'], tokens_per_minute: 1000 }] });
    for (let i = 0; i < 2; i++) world.admit(0, { ...request, askedTokens: 900, promptTokens: 50 });
    await settled(world);
    expect([world.running.length, world.refused]).toEqual([1, ['rate_limit_exceeded']]);
    expect(lastRefusal(world)).toMatchObject({
      detail: expect.stringMatching(
        /^This API key may use 1000 tokens per minute .* this request may use up to 950\. /,
      ),
      rate: undefined,
      tokenRate: { limit: 1000 },
      limit: { level: 'key', models: ['*'], dimension: 'tokens_per_minute' },
    });
    const [first] = world.running.splice(0);
    if (first === undefined) throw new Error('nothing was admitted');
    world.end(0, first, { total: 40 });
    await settled(world);
    world.admit(0, { ...request, askedTokens: 910, promptTokens: 50 });
    await settled(world);
    expect(world.running.length).toBe(1);
    const [long] = world.running.splice(0);
    if (long === undefined) throw new Error('nothing was admitted');
    world.end(0, long, { total: 100_000 });
    await settled(world);
    world.admit(0, { ...request, askedTokens: 1 });
    await settled(world);
    expect(world.refused.length).toBe(2);
    await world.live(60_000);
    world.admit(0, { ...request, askedTokens: 900 });
    await settled(world);
    expect(world.running.length).toBe(1);
  });

  test('of tokens refuses a request that is larger than the whole limit, and says so', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    world.admit(0, { ...requestWith({ tenant: [{ models: ['*'], tokens_per_minute: 100 }] }), askedTokens: 101 });
    await settled(world);
    expect(lastRefusal(world)).toMatchObject({
      code: 'rate_limit_exceeded',
      detail:
        'This request may use up to 101 tokens, but this tenant may use 100 tokens per minute for the models *. Request a shorter answer, for example with max_tokens, or send a shorter prompt.',
    });
  });

  test('of requests at the same time admits the next one when one ends', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const request = requestWith({ tenant: [{ models: ['*'], parallel: 2 }] });
    for (let i = 0; i < 3; i++) world.admit(0, request);
    await settled(world);
    expect([world.running.length, world.refused]).toEqual([2, ['rate_limit_exceeded']]);
    expect(lastRefusal(world)).toMatchObject({ limit: { level: 'tenant', models: ['*'], dimension: 'parallel' } });
    const [first] = world.running.splice(0, 1);
    if (first === undefined) throw new Error('nothing was admitted');
    world.end(0, first, { total: 1 });
    await settled(world);
    world.admit(0, request);
    await settled(world);
    expect(world.running.length).toBe(2);
  });

  test('must have room at every level, and a refusal at one level uses nothing of the others', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const tight = requestWith({
      tenant: [{ models: ['*'], tokens_per_minute: 1000 }],
      user: [{ models: ['*'], tokens_per_minute: 500 }],
      key: [{ models: ['*'], requests_per_minute: 1 }],
    });
    const other = { ...requestWith({ tenant: [{ models: ['*'], tokens_per_minute: 1000 }] }), askedTokens: 900 };
    for (let i = 0; i < 4; i++) world.admit(0, { ...tight, askedTokens: 100 });
    await settled(world);
    expect([world.running.length, world.refused.length]).toEqual([1, 3]);
    world.admit(0, other);
    await settled(world);
    expect(world.running.length).toBe(2);
  });

  test('that was changed counts from the next check, and a quota that refuses gives its tokens back', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const rule = (tokens: number) => requestWith({ tenant: [{ models: ['*'], tokens_per_minute: tokens }] });
    world.admit(0, { ...rule(100), askedTokens: 100 });
    await settled(world);
    world.admit(0, { ...rule(100), askedTokens: 100, monthlyTokens: 10 });
    await settled(world);
    world.admit(0, { ...rule(300), askedTokens: 200, monthlyTokens: 10 });
    await settled(world);
    expect(world.refused).toEqual(['rate_limit_exceeded', 'insufficient_quota']);
    world.admit(0, { ...rule(300), askedTokens: 200 });
    await settled(world);
    expect(world.running.length).toBe(2);
  });
});

describe.each([
  ['requests per minute', [{ models: ['*'], requests_per_minute: 10 }]],
  ['tokens per minute', [{ models: ['*'], tokens_per_minute: 10 }]],
  ['requests at the same time', [{ models: ['*'], parallel: 10 }]],
])('of %s', (_, rules) => {
  const request = { ...requestWith({ tenant: rules }), askedTokens: 1 };

  /** Two processes, each with a request that runs, and a store that is slow or unreachable from then on. */
  async function worldBefore(fault: 'slow' | 'unreachable'): Promise<World> {
    let wayMs = 1;
    const world = new World(2, () => wayMs);
    await settled(world);
    for (const i of [0, 1]) world.admit(i, request);
    await settled(world);
    expect(world.running.length).toBe(2);
    if (fault === 'slow') wayMs = 750;
    else world.storeUp = false;
    return world;
  }
  const send = (world: World, parts: Partial<AdmissionRequest> = {}): void => {
    for (let i = 0; i < 6; i++) world.admit(0, { ...request, ...parts });
  };

  test('the fair share of a process decides a check that cannot wait for the store, and the store a check that can', async () => {
    const world = await worldBefore('slow');
    send(world, { decideByMs: (world.processes[0]?.monotonicMs() ?? 0) + 400 });
    await world.live(400);
    expect([world.running.length, world.refused.length, world.faults, world.pending]).toEqual([6, 2, 0, 0]);
    const patient = await worldBefore('slow');
    send(patient);
    await patient.live(300);
    expect(patient.pending).toBe(6);
    await patient.live(4000);
    expect([patient.running.length, patient.refused.length, patient.faults]).toEqual([8, 0, 0]);
  });

  test('each process continues with its fair share while the store is unreachable, and with the rest afterwards', async () => {
    const world = await worldBefore('unreachable');
    send(world);
    await world.live(400);
    expect([world.running.length, world.refused.length, world.faults, world.pending]).toEqual([6, 2, 0, 0]);
    world.storeUp = true;
    await world.live(1500);
    send(world);
    await world.live(400);
    expect([world.running.length, world.refused.length]).toEqual([10, 4]);
  });
});

describe('the end of a request that this process admitted', () => {
  const rules = [{ models: ['*'], parallel: 2, tokens_per_minute: 1000 }];
  const request = { ...requestWith({ tenant: rules }), askedTokens: 500 };

  /** Two requests that run and take all places and tokens. */
  async function fullWorld(): Promise<{ readonly world: World; readonly first: Running; readonly second: Running }> {
    const world = new World(1, () => 1);
    await settled(world);
    for (let i = 0; i < 2; i++) world.admit(0, request);
    await settled(world);
    const [first, second] = world.running;
    if (first === undefined || second === undefined) throw new Error('nothing was admitted');
    return { world, first, second };
  }

  test('frees its place and its unspent tokens at once while the store is unreachable', async () => {
    const { world, first, second } = await fullWorld();
    world.storeUp = false;
    await settled(world);
    world.admit(0, request);
    await settled(world);
    expect(world.refused).toEqual(['rate_limit_exceeded']);
    world.end(0, first, { total: 0 });
    world.end(0, second, { total: 0 });
    for (let i = 0; i < 2; i++) world.admit(0, request);
    expect([world.running.length, world.refused.length, world.faults]).toEqual([4, 1, 0]);
  });

  test('frees them before it is booked', async () => {
    const { world, first } = await fullWorld();
    world.end(0, first, { total: 0 });
    world.admit(0, request);
    expect([world.running.length, world.pending, world.refused]).toEqual([3, 0, []]);
  });

  test.each(['reachable', 'unreachable'])(
    'frees them once if it is reported twice, and after the store has booked it, with a store that is %s',
    async (state) => {
      const { world, first } = await fullWorld();
      world.storeUp = state === 'reachable';
      await settled(world);
      for (let i = 0; i < 2; i++) world.end(0, first, { total: 0 });
      await settled(world);
      world.storeUp = true;
      await settled(world);
      world.end(0, first, { total: 0 });
      for (let i = 0; i < 2; i++) world.admit(0, request);
      await settled(world);
      expect([world.running.length, world.refused]).toEqual([3, ['rate_limit_exceeded']]);
    },
  );

  test('while the store is unreachable leaves its unspent tokens to the other processes afterwards', async () => {
    const world = new World(2, () => 1);
    await settled(world);
    const ofTokens = { ...requestWith({ tenant: [{ models: ['*'], tokens_per_minute: 1000 }] }), askedTokens: 500 };
    for (let i = 0; i < 2; i++) world.admit(0, ofTokens);
    await settled(world);
    world.storeUp = false;
    await settled(world);
    for (const ended of world.running) world.end(0, ended, { total: 0 });
    await settled(world);
    world.storeUp = true;
    await settled(world);
    for (let i = 0; i < 2; i++) world.admit(1, ofTokens);
    await settled(world);
    expect([world.running.length, world.refused]).toEqual([4, []]);
  });

  test('frees nothing after its reservation expired', async () => {
    const { world, first, second } = await fullWorld();
    await world.live(60_000 + TTL_MS);
    for (let i = 0; i < 2; i++) world.admit(0, request);
    await settled(world);
    expect(world.running.length).toBe(4);
    for (const ended of [first, second]) world.end(0, ended, { total: 0 });
    await settled(world);
    world.admit(0, request);
    await settled(world);
    expect(world.refused).toEqual(['rate_limit_exceeded']);
  });

  test('keeps what it reserved of a budget until it is booked', async () => {
    const world = new World(1, () => 1);
    await settled(world);
    const ofMonth = { ...request, monthlyTokens: 500 };
    world.admit(0, ofMonth);
    await settled(world);
    const [first] = world.running;
    if (first === undefined) throw new Error('nothing was admitted');
    world.storeUp = false;
    world.end(0, first, { total: 100 });
    await settled(world);
    world.admit(0, { ...ofMonth, askedTokens: 400 });
    await settled(world);
    expect([world.running.length, world.faults]).toEqual([1, 1]);
    world.storeUp = true;
    await settled(world);
    world.admit(0, { ...ofMonth, askedTokens: 400 });
    await settled(world);
    expect(world.running.length).toBe(2);
  });
});
