import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { reservationAmount } from '../../src/metering/admission.ts';
import { MAX_REVIEWED } from '../../src/metering/budgets.ts';
import { MAX_EXPIRED } from '../../src/metering/outstanding.ts';
import { runs } from '../support/properties.ts';
import { usedOf } from './support/memory-store.ts';
import { askOf, type Running, TTL_MS, World } from './support/world.ts';

const PERIOD = '2026-11';

function tokens(quota: number, amount: number) {
  return { metered: true, monthlyTokens: quota, askedTokens: amount };
}

function first(world: World): Running {
  const [request] = world.running;
  if (request === undefined) throw new Error('nothing was admitted');
  return request;
}

function limitsOf(world: World, process = 0) {
  const found = world.processes[process];
  if (found === undefined) throw new Error('no such process');
  return found.limits;
}

describe('a check', () => {
  test('of a tenant without limits is admitted at once and asks the store nothing', () => {
    const world = new World(1, () => 1);
    const plain = limitsOf(world).admit(askOf({}));
    expect(plain).toEqual({ kind: 'admitted', reservation: undefined, rate: undefined });
    expect(limitsOf(world).admit(askOf({}))).toBe(plain);
    const metered = limitsOf(world).admit(askOf({ metered: true }));
    expect(metered).toMatchObject({
      kind: 'admitted',
      reservation: expect.stringMatching(/^[0-9a-f]{52}$/),
      rate: undefined,
    });
    expect(limitsOf(world).stats.statements).toBe(0);
  });

  test('is answered from memory once its tenant is warm', async () => {
    const world = new World(1, () => 5);
    const request = { ...tokens(1_000_000, 100), tenantRpm: 60_000, keyId: 'key_1', keyRpm: 50_000 };
    // Some load, so that slices are worth taking.
    for (let i = 0; i < 10; i++) {
      for (let n = 0; n < 20; n++) world.admit(0, request);
      await world.live(100);
    }
    const admission = limitsOf(world).admit(askOf(request));
    expect(admission).toMatchObject({ kind: 'admitted', rate: { limit: 50_000 } });
  });

  test('of one of many tenants shares its statements with the others: at most 2 for 1,000 checks of rate and tokens', async () => {
    const world = new World(1, () => 5);
    const TENANTS = 50;
    const request = { ...tokens(1_000_000_000_000, 256), tenantRpm: 100_000_000 };
    const second = async (perStep: number): Promise<void> => {
      for (let step = 0; step < 10; step++) {
        for (let i = 0; i < perStep; i++) world.admit(0, { ...request, tenantId: `tenant-${i % TENANTS}` });
        await world.live(100);
      }
    };
    // Each begins at a time of its own.
    for (let i = 0; i < TENANTS; i++) {
      for (let n = 0; n < 5; n++) world.admit(0, { ...request, tenantId: `tenant-${i}` });
      await world.live(100);
    }
    for (let i = 0; i < 3; i++) await second(300);
    const { statements } = limitsOf(world).stats;
    for (let i = 0; i < 5; i++) await second(300);
    expect(limitsOf(world).stats.statements - statements).toBeLessThanOrEqual(30);
    expect([world.faults, world.refused.length]).toEqual([0, 0]);
  });

  test('shows the tighter of two rates, and gives the tenant back what the key refused', async () => {
    const world = new World(1, () => 1);
    const request = { tenantRpm: 5, keyId: 'key_1', keyRpm: 2 };
    for (let i = 0; i < 6; i++) {
      world.admit(0, request);
      await world.advance(10);
    }
    expect(world.refused).toEqual(Array.from({ length: 4 }, () => 'rate_limit_exceeded'));
    const refusal = limitsOf(world).admit(askOf(request));
    expect(refusal).toMatchObject({ kind: 'refused', code: 'rate_limit_exceeded', rate: { limit: 2, remaining: 0 } });
    // Three are left to the tenant's other keys.
    for (let i = 0; i < 5; i++) world.admit(0, { ...request, keyId: 'key_2', keyRpm: 10 });
    await world.advance(50);
    expect(limitsOf(world).stats).toMatchObject({ rateAllowed: 5, rateRefused: 7 });
  });

  test('meets its rate before its quota', async () => {
    const world = new World(1, () => 1);
    for (let i = 0; i < 3; i++) {
      world.admit(0, { ...tokens(10, 20), tenantRpm: 2 });
      await world.advance(20);
    }
    expect(world.refused).toEqual(['insufficient_quota', 'insufficient_quota', 'rate_limit_exceeded']);
  });

  test('reserves the estimate of its prompt, and its own limit or the default, within the maximum, for each answer', () => {
    const request = {
      askedTokens: undefined,
      askedChoices: 1,
      maxTokensPerRequest: undefined,
      promptTokens: 7,
      inlineFiles: 0,
    };
    const estimates = { tokenEstimate: 1024, fileEstimate: 1000 };
    expect(reservationAmount(request, estimates)).toEqual({ prompt: 7, answer: 1024 });
    expect(reservationAmount({ ...request, maxTokensPerRequest: 100 }, estimates)).toEqual({ prompt: 7, answer: 100 });
    expect(reservationAmount({ ...request, askedTokens: 50, askedChoices: 3 }, estimates)).toEqual({
      prompt: 7,
      answer: 150,
    });
    expect(reservationAmount({ ...request, askedChoices: 4 }, estimates)).toEqual({ prompt: 7, answer: 4096 });
    expect(reservationAmount({ ...request, askedTokens: 0 }, estimates)).toEqual({ prompt: 7, answer: 0 });
    expect(reservationAmount({ ...request, inlineFiles: 3 }, estimates)).toEqual({ prompt: 3007, answer: 1024 });
    expect(reservationAmount({ ...request, askedTokens: 0, askedChoices: 0, promptTokens: 0 }, estimates)).toEqual({
      prompt: 0,
      answer: 1,
    });
    const { prompt, answer } = reservationAmount(
      { ...request, askedTokens: Number.MAX_SAFE_INTEGER, askedChoices: 1e9 },
      estimates,
    );
    expect(Number.isSafeInteger(prompt + answer)).toBe(true);
  });

  test('whose prompt alone is estimated at more than the quota has left is refused, however small its limit', async () => {
    const world = new World(1, () => 1);
    world.admit(0, { ...tokens(1000, 1), promptTokens: 1000 });
    await world.advance(50);
    expect(world.refused).toEqual(['insufficient_quota']);
    world.admit(0, { ...tokens(1000, 1), promptTokens: 999 });
    await world.advance(50);
    expect(world.running.length).toBe(1);
    expect(world.reserved).toBe(1000);
  });
});

describe('a monthly quota', () => {
  test('that is used up rejects at once, with the time of its next reset, until it is raised', async () => {
    const world = new World(1, () => 5);
    world.admit(0, { ...tokens(100, 100), timezone: 'Europe/Berlin' });
    await world.live(100);
    world.end(0, first(world), { total: 100 });
    await world.live(1500);
    world.admit(0, { ...tokens(100, 1), timezone: 'Europe/Berlin' });
    await world.live(100);
    expect(world.refused).toEqual(['insufficient_quota']);
    const { statements } = limitsOf(world).stats;
    expect(limitsOf(world).admit(askOf({ ...tokens(100, 1), timezone: 'Europe/Berlin' }))).toMatchObject({
      code: 'insufficient_quota',
      resetsAt: '2026-11-30T23:00:00.000Z',
    });
    expect(limitsOf(world).stats.statements).toBe(statements);
    world.admit(0, { ...tokens(150, 50), timezone: 'Europe/Berlin' });
    await world.live(100);
    expect(world.running.length).toBe(2);
  });

  test('that is lowered counts at once, also for what is held', async () => {
    const world = new World(1, () => 5);
    for (let i = 0; i < 10; i++) world.admit(0, tokens(1_000_000, 100));
    await world.live(100);
    world.admit(0, tokens(1000, 100));
    await world.live(100);
    expect([world.running.length, world.refused]).toEqual([10, ['insufficient_quota']]);
  });

  test("resets at the start of the tenant's month, and spent tokens count for the month of their check", async () => {
    const world = new World(1, () => 5);
    world.nowMs = Date.parse('2026-11-30T22:59:30Z');
    const request = { ...tokens(100, 100), timezone: 'Europe/Berlin' };
    world.admit(0, request);
    await world.advance(100);
    world.nowMs = Date.parse('2026-11-30T23:00:05Z');
    world.admit(0, request);
    await world.advance(100);
    expect([world.running.length, world.refused]).toEqual([2, []]);
    world.end(0, first(world), { total: 70 });
    await world.live(1500);
    expect([world.store.budget('acme', '2026-11').spent, world.store.budget('acme', '2026-12').spent]).toEqual([70, 0]);
  });

  test('gets the unspent tokens of a request back when its end is reported, to this or to another process', async () => {
    for (const told of [0, 1]) {
      const world = new World(2, () => 5);
      await world.live(200);
      world.admit(0, tokens(100, 100));
      await world.live(100);
      world.end(told, first(world), { total: 30 });
      await world.live(2500);
      expect(usedOf(world.store.budget('acme', PERIOD))).toBe(30);
      world.admit(1, tokens(100, 70));
      await world.live(100);
      expect([world.running.length, world.refused]).toEqual([2, []]);
    }
  });

  test('is not spent from a hold that was taken away while its process was stopped', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    world.admit(0, tokens(1000, 10));
    await world.live(100);
    const sleeper = world.processes[0];
    if (sleeper !== undefined) sleeper.asleepUntilMs = world.nowMs + 2 * TTL_MS;
    await world.live(TTL_MS + 2000, 500);
    await Promise.all([limitsOf(world, 1).tidy(), world.advance(100)]);
    world.admit(1, tokens(1000, 1000));
    await world.live(100);
    expect(world.running.length).toBe(2);
    world.admit(0, tokens(1000, 10));
    await world.advance(100);
    expect([world.running.length, world.refused]).toEqual([2, ['insufficient_quota']]);
  });

  test('sends no statements without changes, except regular ones for the settlements of other processes', async () => {
    const world = new World(1, () => 5);
    world.admit(0, tokens(100_000, 10));
    await world.live(12_000);
    const { statements } = limitsOf(world).stats;
    await world.live(5000);
    expect(limitsOf(world).stats.statements - statements).toBeLessThanOrEqual(7);
    world.end(0, first(world), { total: 10 });
    await world.live(2000);
    const settled = limitsOf(world).stats.statements;
    await world.live(20_000);
    // That it lives.
    expect(limitsOf(world).stats.statements - settled).toBeLessThanOrEqual(5);
  });

  test('continues with the held tokens while the store is unreachable, and then is a fault', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    for (let i = 0; i < 20; i++) {
      for (const process of [0, 1]) world.admit(process, tokens(1_000_000, 10));
      await world.live(100);
    }
    world.storeUp = false;
    await world.live(5500);
    const before = world.running.length;
    const { held, reserved } = limitsOf(world).stats.budgets;
    const holds = Math.floor((held - reserved) / 10);
    expect(holds).toBeGreaterThan(0);
    for (let i = 0; i < holds + 5; i++) world.admit(0, tokens(1_000_000, 10));
    await world.live(200);
    expect([world.running.length - before, world.faults, world.refused]).toEqual([holds, 5, []]);
    world.storeUp = true;
    await world.live(1000);
    world.admit(0, tokens(1_000_000, 10));
    await world.live(100);
    expect([world.running.length - before, world.faults]).toEqual([holds + 1, 5]);
  });

  test('that is spent refuses while the store is away too', async () => {
    const world = new World(1, () => 5);
    world.admit(0, tokens(100, 100));
    await world.live(200);
    world.end(0, first(world), { total: 95 });
    await world.live(3000);
    world.storeUp = false;
    await world.live(5500);
    world.admit(0, tokens(100, 6));
    await world.live(200);
    expect([world.refused, world.faults]).toEqual([['insufficient_quota'], 0]);
  });

  test('that has too little left rejects, and is no fault, however often other processes settle while a check waits', async () => {
    const world = new World(3, () => 200);
    await world.live(1000);
    for (let i = 0; i < 60; i++) world.admit(0, tokens(300, 5));
    await world.live(2000);
    const running = [...world.running];
    expect(running.length).toBe(60);
    for (const [i, request] of running.entries()) {
      world.end(1 + (i % 2), request, { total: 5 });
      world.admit(0, tokens(300, 50));
      await world.live(100);
    }
    await world.live(3000);
    expect([world.faults, world.refused.length, world.pending]).toEqual([0, 60, 0]);
  });

  test('without any answer of the store is a fault while the store is unreachable', async () => {
    const world = new World(1, () => 5);
    world.storeUp = false;
    world.admit(0, tokens(1000, 10));
    await world.live(200);
    expect([world.faults, world.running.length]).toEqual([1, 0]);
  });

  test('gets back what is not reserved when a process stops, and keeps what is', async () => {
    const world = new World(1, () => 5);
    for (let i = 0; i < 10; i++) world.admit(0, tokens(100_000, 100));
    await world.live(300);
    expect(usedOf(world.store.budget('acme', PERIOD))).toBeGreaterThan(1000);
    const stopped = limitsOf(world).stop();
    await world.advance(200);
    await stopped;
    expect(usedOf(world.store.budget('acme', PERIOD))).toBe(1000);
  });
});

describe('many budgets', () => {
  test('are reviewed in bounded steps, and all of them are returned and forgotten', async () => {
    const BUDGETS = 7000;
    const world = new World(1, () => 5);
    await world.live(200);
    for (let i = 0; i < BUDGETS; i++) world.admit(0, { ...tokens(1_000_000, 10), tenantId: `tenant-${i}` });
    await world.live(500);
    for (const request of world.running) world.end(0, request, { total: 10 });
    let most = 0;
    for (let last = limitsOf(world).stats.budgets.reviewed; limitsOf(world).stats.budgets.budgets > 0; ) {
      await world.live(100);
      const { reviewed } = limitsOf(world).stats.budgets;
      most = Math.max(most, reviewed - last);
      last = reviewed;
    }
    expect(most).toBe(MAX_REVIEWED);
    expect(limitsOf(world).stats.budgets).toMatchObject({ budgets: 0, held: 0, reserved: 0 });
    expect(world.store.budget('tenant-77', PERIOD)).toMatchObject({ spent: 10, holds: new Map() });
  });
});

describe('the shares of quotas for metrics', () => {
  test('are those of the 100 tenants with the least left, of thousands', async () => {
    const BUDGETS = 4500;
    const world = new World(1, () => 5);
    await world.live(200);
    for (let i = 0; i < BUDGETS; i++) world.admit(0, { ...tokens(10_000, 1 + i), tenantId: `tenant-${i}` });
    // Two reviews: the store has answered before the second.
    await world.live(8000);
    const { quotas } = limitsOf(world);
    expect(quotas.length).toBe(100);
    const known = Array.from({ length: BUDGETS }, (_, i) => usedOf(world.store.budget(`tenant-${i}`, PERIOD)) / 10_000);
    expect(quotas.map(({ ratio }) => ratio)).toEqual(known.sort((a, b) => b - a).slice(0, 100));
  });
});

describe('a reservation', () => {
  /** Tokens that the first process has reserved. */
  const reservedBy = (world: World, process = 0): number => limitsOf(world, process).stats.budgets.reserved;

  test('expires when neither an end nor a renewal follows, in bounded steps, and what it held can be spent', async () => {
    const world = new World(1, () => 5);
    world.admit(0, tokens(1_000_000_000, 1));
    await world.live(200);
    for (let burst = 0; burst < 2; burst++) {
      for (let i = 0; i < 1.5 * MAX_EXPIRED; i++) world.admit(0, tokens(1_000_000_000, 1));
      await world.live(100);
    }
    const before = reservedBy(world);
    expect(before).toBe(3 * MAX_EXPIRED + 1);
    await world.live(TTL_MS - 2000);
    expect(reservedBy(world)).toBe(before);
    let most = 0;
    for (let last = before; last > 0; ) {
      await world.live(100);
      const now = reservedBy(world);
      most = Math.max(most, last - now);
      last = now;
    }
    expect(most).toBe(MAX_EXPIRED);
    expect(limitsOf(world).stats).toMatchObject({ reservationsExpired: before, tokensExpired: before });
  });

  test('lasts while its request runs, whichever process receives each renewal, also if one of three is lost', async () => {
    const PROCESSES = 3;
    const pattern = fc.array(fc.record({ process: fc.nat({ max: PROCESSES - 1 }), lost: fc.boolean() }), {
      minLength: 12,
      maxLength: 12,
    });
    const latency = fc.integer({ min: 0, max: 200 });
    await fc.assert(
      fc.asyncProperty(pattern, latency, async (renewals, ms) => {
        const world = new World(PROCESSES, () => ms);
        await world.live(1000);
        world.admit(0, tokens(1000, 300));
        world.admit(0, tokens(1000, 20));
        await world.live(1000);
        const [request] = world.running;
        if (request === undefined) return expect.fail('nothing was admitted');
        for (const [i, { process, lost }] of renewals.entries()) {
          await world.live(TTL_MS / 3, 250);
          // Never two in a row.
          if (!(lost && i % 2 === 0)) world.renew(process, request);
          expect(reservedBy(world)).toBeGreaterThanOrEqual(300);
        }
        expect(reservedBy(world)).toBe(300);
        await world.live(2 * TTL_MS, 250);
        expect(reservedBy(world)).toBe(0);
      }),
      { numRuns: runs(25), interruptAfterTimeLimit: 8000 },
    );
  });

  test('that another process renewed lives from the time at which the store received that, not from the time at which its issuer learned it', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    world.admit(0, tokens(1000, 100));
    await world.live(1000);
    world.renew(1, first(world));
    await world.live(700);
    const renewedMs = world.nowMs - 200;
    const [processId] = world.processes;
    // For a while, the process cannot read the reports of the others.
    if (processId !== undefined) processId.asleepUntilMs = world.nowMs + TTL_MS / 2;
    await world.live(TTL_MS / 2 + 500);
    expect(limitsOf(world).stats).toMatchObject({ reservationsRenewed: 1 });
    await world.live(renewedMs + TTL_MS - 1500 - world.nowMs);
    expect(reservedBy(world)).toBe(100);
    await world.live(3500);
    expect(reservedBy(world)).toBe(0);
  });

  test('does not expire while the store is unreachable and no renewal can arrive, nor at once when the store is back', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    world.admit(0, tokens(1000, 100));
    await world.live(1000);
    world.storeUp = false;
    for (let i = 0; i < 9; i++) {
      await world.live(TTL_MS / 3, 500);
      world.renew(1, first(world));
    }
    expect(reservedBy(world)).toBe(100);
    world.storeUp = true;
    await world.live(2000);
    expect(limitsOf(world).stats).toMatchObject({ reservationsRenewed: 1, reservationsExpired: 0 });
    await world.live(TTL_MS - 3000, 500);
    expect(reservedBy(world)).toBe(100);
    await world.live(5000);
    expect(reservedBy(world)).toBe(0);
  });

  test('keeps no holds of a process that lives from it when the store was away for longer than silence may last', async () => {
    const world = new World(2, () => 5);
    await world.live(TTL_MS + 1000, 500);
    world.admit(0, tokens(1000, 100));
    await world.live(1000);
    world.storeUp = false;
    await world.live(3 * TTL_MS, 500);
    world.storeUp = true;
    // The other process is back first, and tidies at once.
    const [processId] = world.processes;
    if (processId !== undefined) processId.asleepUntilMs = world.nowMs + 2000;
    await world.live(500);
    void limitsOf(world, 1).tidy();
    await world.live(500);
    expect(usedOf(world.store.budget('acme', PERIOD))).toBeGreaterThanOrEqual(100);
    await world.live(3000);
    expect(usedOf(world.store.budget('acme', PERIOD))).toBeGreaterThanOrEqual(100);
  });

  test('of a cancelled check is free at once, and its end is booked all the same if the request ran', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    world.admit(0, { ...tokens(100, 100), tenantRpm: 10 });
    await world.live(500);
    const request = first(world);
    const limits = limitsOf(world);
    limitsOf(world, 1).release(request.reservation);
    for (const unknown of ['', 'ab'.repeat(23), `${request.reservation}0`, 'é']) limits.release(unknown);
    expect(reservedBy(world)).toBe(100);
    limits.release(request.reservation);
    expect(reservedBy(world)).toBe(0);
    limits.release(request.reservation);
    expect(limits.stats).toMatchObject({ reservationsReleased: 1, tokensReleased: 100 });
    await world.live(200);
    world.admit(1, tokens(100, 60));
    await world.live(200);
    expect([world.running.length, world.refused]).toEqual([2, []]);
    for (const process of [0, 1]) world.end(process, request, { total: 30 });
    await world.live(2000);
    expect(world.store.usage.get('acme')).toEqual({ requests: 1, tokens: 30, estimated: 0 });
    expect(world.store.budget('acme', PERIOD).spent).toBe(30);
    // Its rate is not given back.
    expect(limits.stats.rateAllowed).toBe(1);
    for (let i = 0; i < 10; i++) world.admit(0, { tenantRpm: 10 });
    await world.live(200);
    expect(world.refused).toEqual(['rate_limit_exceeded']);
  });

  test('of a collection is renewed in the store by the process that received the report, and released by its issuer', async () => {
    const world = new World(2, () => 5);
    await world.live(200);
    const creation = { createsCollection: true, maxCollections: 2 };
    for (let i = 0; i < 2; i++) world.admit(0, creation);
    await world.live(200);
    const [kept, cancelled] = world.running;
    if (kept === undefined || cancelled === undefined) return expect.fail('nothing was admitted');
    for (let i = 0; i < 6; i++) {
      await world.live(TTL_MS / 3, 500);
      world.renew(i % 2, kept);
      if (i < 3) world.renew(1, cancelled);
    }
    await world.live(1000);
    expect(world.store.creations.size).toBe(2);
    await world.live(TTL_MS / 2, 500);
    world.admit(1, creation);
    await world.live(200);
    expect(world.refused).toEqual([]);
    world.admit(1, creation);
    await world.live(200);
    expect(world.refused).toEqual(['insufficient_quota']);
    limitsOf(world).release(kept.reservation);
    await world.live(100);
    world.admit(1, creation);
    await world.live(200);
    expect([world.refused.length, world.running.length]).toEqual([1, 4]);
  });

  test('by the thousand of cancelled checks are released with few statements, also after an outage of the store', async () => {
    const world = new World(1, () => 5);
    await world.live(200);
    for (let i = 0; i < 1000; i++) world.admit(0, { createsCollection: true, maxCollections: 1000 });
    await world.live(500);
    expect(world.store.creations.size).toBe(1000);
    world.storeUp = false;
    const { statements } = limitsOf(world).stats;
    for (const { reservation } of world.running) limitsOf(world).release(reservation);
    await world.live(1000);
    world.storeUp = true;
    await world.live(1500);
    expect(world.store.creations.size).toBe(0);
    expect(limitsOf(world).stats.statements - statements).toBeLessThanOrEqual(60);
    expect(limitsOf(world).stats).toMatchObject({ reservationsReleased: 1000, changesDropped: 0, changesWaiting: 0 });
  });
});

describe('the end of a request', () => {
  test('books by the reservation that the check made, and only then', async () => {
    const world = new World(1, () => 1);
    world.admit(0, { metered: true });
    await world.live(200);
    const request = first(world);
    world.end(0, { ...request, reservation: 'ab'.repeat(23) }, { total: 50 });
    world.end(0, { ...request, reservation: 'ab'.repeat(16) }, { total: 50 });
    world.end(0, { ...request, reservation: 'not an id' }, { total: 50 });
    await world.live(500);
    expect(world.store.usage.get('acme')).toBeUndefined();
    world.end(0, request, { total: 5 });
    world.end(0, request, { total: 5 });
    await world.live(500);
    expect(world.store.usage.get('acme')).toEqual({ requests: 1, tokens: 5, estimated: 0 });
    expect(limitsOf(world).stats).toMatchObject({ settled: 1, duplicates: 1 });
  });

  test('books nothing a day later', async () => {
    const world = new World(1, () => 1);
    world.admit(0, { metered: true });
    await world.live(200);
    world.nowMs += 25 * 3_600_000;
    world.end(0, first(world), { total: 5 });
    await world.live(500);
    expect([world.store.usage.get('acme'), limitsOf(world).stats.late]).toEqual([undefined, 1]);
  });

  test('is booked when the store is back', async () => {
    const world = new World(1, () => 1);
    world.admit(0, { metered: true });
    await world.live(200);
    world.storeUp = false;
    world.end(0, first(world), { total: 5 });
    await world.live(1000);
    world.storeUp = true;
    await world.live(1000);
    expect(world.store.usage.get('acme')).toEqual({ requests: 1, tokens: 5, estimated: 0 });
  });
});
