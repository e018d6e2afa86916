/**
 * The rules for every implementation of the store's ports. They run on PostgreSQL and on the memory store of the other
 * tests.
 */

import { describe, expect, test } from 'vitest';
import type {
  HoldRequest,
  HoldResult,
  MeteringStore,
  RateLeaseRequest,
  ReservationChange,
  Settlement,
} from '../../../src/metering/ports.ts';
import type { AlertingBudget, Booked } from './memory-store.ts';

export interface StoreUnderTest {
  readonly store: MeteringStore;
  /** Tokens that all processes have spent and hold. */
  budget(tenant: string, period: string): Promise<{ readonly spent: number; readonly used: number }>;
  usage(tenant: string): Promise<{ readonly requests: number; readonly tokens: number; readonly estimated: number }>;
  /** Everything that was booked for the tenant, by the names of `MemoryStore.booked`. */
  booked(tenant: string): Promise<ReadonlyMap<string, Booked>>;
  collections(tenant: string): Promise<number>;
  addBudget(tenant: string, budget: Omit<AlertingBudget, 'tenant'> & { readonly id: string }): Promise<void>;
  /** Adds a tenant with this limit of monthly tokens. */
  setQuota(tenant: string, tokens: number): Promise<void>;
  /** Reached thresholds as `<period> <threshold>`, sorted. */
  alerts(tenant: string): Promise<readonly string[]>;
}

const PERIOD = '2026-11';
const TIDY = { windowMs: 60_000, holdTtlMs: 600_000, settlementKeepMs: 86_400_000, batch: 1000 };

let names = 0;
/** Each test has processes and tenants of its own. */
function fresh(prefix: string): string {
  names += 1;
  return `${prefix}${names}`;
}

function rate(subject: string, parts: Partial<RateLeaseRequest>): RateLeaseRequest {
  return { subject, window: 100, limit: 10, requested: 0, report: 0, ...parts };
}

function tokens(tenant: string, parts: Partial<HoldRequest>): HoldRequest {
  return { tenant, period: PERIOD, quota: 100, requested: 0, changes: 0, confirmed: 0, ...parts };
}

function settlement(processId: string, counter: number, parts: Partial<Settlement>): Settlement {
  return {
    processId,
    counter,
    held: true,
    tenant: 'acme',
    period: PERIOD,
    day: '2026-11-21',
    model: 'm',
    key: '',
    user: 'usr_1',
    prompt: 3,
    completion: 4,
    cached: 1,
    total: 7,
    cost: 0,
    priceVersion: 0,
    price: undefined,
    cacheWrite: 0,
    charges: [],
    estimated: false,
    books: true,
    collections: undefined,
    collection: undefined,
    response: undefined,
    ...parts,
  };
}

function shuffled<T>(values: readonly T[], seed: number): T[] {
  return values
    .map((value, i) => ({ value, order: (i * 7919 + seed * 104_729) % 1009 }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value);
}

export function conformance(under: () => StoreUnderTest): void {
  /** A process's words in turn. */
  function speaker(
    processId: string,
  ): (requests: readonly HoldRequest[], acked?: readonly number[]) => Promise<HoldResult> {
    let sequence = 0;
    return (requests, acked = []) => under().store.hold({ processId, sequence: ++sequence, requests, acked });
  }

  describe('rates', () => {
    test('grant what is left of a window, in the order of the wishes, and never more than its limit', async () => {
      const [a, b] = [fresh('tenant:a'), fresh('tenant:b')];
      const { store } = under();
      const first = await store.lease(fresh('h'), [rate(b, { requested: 4 }), rate(a, { requested: 12 })]);
      expect(first.grants).toEqual([
        { granted: 4, total: 4 },
        { granted: 10, total: 10 },
      ]);
      const second = await store.lease(fresh('h'), [
        rate(a, { requested: 1 }),
        rate(b, { requested: 9 }),
        rate(a, { requested: 3, limit: 12 }),
      ]);
      expect(second.grants.map(({ granted }) => granted)).toEqual([0, 6, 2]);
      expect((await store.lease(fresh('h'), [rate(a, { requested: 5, window: 101 })])).grants).toEqual([
        { granted: 5, total: 5 },
      ]);
    });

    test('count reported units beyond the limit, and subtract returned units', async () => {
      const subject = fresh('tenant:a');
      const { store } = under();
      await store.lease(fresh('h'), [rate(subject, { requested: 8 })]);
      expect((await store.lease(fresh('h'), [rate(subject, { report: 5, requested: 1 })])).grants).toEqual([
        { granted: 0, total: 13 },
      ]);
      expect((await store.lease(fresh('h'), [rate(subject, { report: -6, requested: 9 })])).grants).toEqual([
        { granted: 3, total: 10 },
      ]);
    });

    test('are leased by concurrent statements that name them in any order', async () => {
      const subjects = Array.from({ length: 12 }, () => fresh('tenant:c'));
      const granted = new Map<string, number>();
      const work = Array.from({ length: 8 }, async (_, processId) => {
        const name = fresh('h');
        for (let round = 0; round < 6; round++) {
          const requests = shuffled(subjects, processId + round).map((subject) =>
            rate(subject, { requested: 3, limit: 50 }),
          );
          const { grants } = await under().store.lease(name, requests);
          for (const [i, request] of requests.entries()) {
            granted.set(request.subject, (granted.get(request.subject) ?? 0) + (grants[i]?.granted ?? 0));
          }
        }
      });
      await Promise.all(work);
      expect([...granted.values()]).toEqual(subjects.map(() => 50));
    });

    test('come with the number of processes that share them', async () => {
      const { store } = under();
      const before = (await store.lease(fresh('h'), [])).processes;
      expect((await store.lease(fresh('h'), [])).processes).toBe(before + 1);
    });
  });

  describe('token budgets', () => {
    test('grant what is neither spent nor held, and follow the changes that processes report of their holds', async () => {
      const tenant = fresh('t');
      const [one, two] = [speaker(fresh('h')), speaker(fresh('h'))];
      expect((await one([tokens(tenant, { requested: 70 })])).grants).toEqual([
        { granted: 70, held: 70, used: 70, spent: 0 },
      ]);
      expect((await two([tokens(tenant, { requested: 70 })])).grants).toEqual([
        { granted: 30, held: 30, used: 100, spent: 0 },
      ]);
      expect((await one([tokens(tenant, { changes: -20 })])).grants[0]).toMatchObject({ held: 50, used: 80 });
      expect((await two([tokens(tenant, { changes: 5, requested: 50 })])).grants[0]).toMatchObject({
        granted: 15,
        held: 50,
        used: 100,
      });
      expect(await under().budget(tenant, PERIOD)).toEqual({ spent: 0, used: 100 });
    });

    test('count a change once, however often it is sent', async () => {
      const tenant = fresh('t');
      const say = speaker(fresh('h'));
      await say([tokens(tenant, { requested: 60 })]);
      for (let i = 0; i < 3; i++) await say([tokens(tenant, { changes: -25, confirmed: 0 })]);
      expect((await say([tokens(tenant, { changes: -35, confirmed: 0 })])).grants[0]).toMatchObject({
        held: 25,
        used: 25,
      });
    });

    test('begin again with a process that no longer held anything', async () => {
      const tenant = fresh('t');
      const say = speaker(fresh('h'));
      await say([tokens(tenant, { requested: 60 })]);
      expect((await say([tokens(tenant, { changes: -60 })])).grants[0]).toMatchObject({ held: 0, used: 0 });
      expect((await say([tokens(tenant, {})])).grants[0]).toMatchObject({ held: 0, used: 0 });
      expect((await say([tokens(tenant, { changes: 9, confirmed: 4 })])).grants[0]).toMatchObject({ held: 5, used: 5 });
    });

    test('ignore a statement that a later one has overtaken', async () => {
      const tenant = fresh('t');
      const processId = fresh('h');
      const { store } = under();
      await store.hold({ processId, sequence: 5, requests: [tokens(tenant, { requested: 10 })], acked: [] });
      await expect(
        store.hold({ processId, sequence: 4, requests: [tokens(tenant, { requested: 10 })], acked: [] }),
      ).rejects.toThrow();
      expect(await under().budget(tenant, PERIOD)).toEqual({ spent: 0, used: 10 });
    });

    test('are never exceeded by concurrent requests', async () => {
      const tenants = Array.from({ length: 5 }, () => fresh('t'));
      await Promise.all(
        Array.from({ length: 8 }, async (_, i) => {
          const say = speaker(fresh('h'));
          for (let round = 0; round < 5; round++) {
            await say(shuffled(tenants, i + round).map((tenant) => tokens(tenant, { requested: 7 })));
          }
        }),
      );
      for (const tenant of tenants) expect(await under().budget(tenant, PERIOD)).toEqual({ spent: 0, used: 100 });
    });

    test('get back the hold of a process that the store no longer sees', async () => {
      const tenant = fresh('t');
      await speaker(fresh('h'))([tokens(tenant, { requested: 60 })]);
      const { store } = under();
      await store.tidy(TIDY);
      expect(await under().budget(tenant, PERIOD)).toEqual({ spent: 0, used: 60 });
      expect((await store.tidy({ ...TIDY, holdTtlMs: -1 })).holds).toBeGreaterThan(0);
      expect(await under().budget(tenant, PERIOD)).toEqual({ spent: 0, used: 0 });
    });
  });

  describe('settlements', () => {
    test('book each reservation once, however many reports arrive at once', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      const all = Array.from({ length: 40 }, (_, i) =>
        settlement(processId, 1000 + i, { tenant, estimated: i % 2 === 0 }),
      );
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, i) => store.settle(fresh('s'), [...shuffled(all, i), ...all.slice(0, 5)])),
      );
      expect(answers.reduce((sum, { booked }) => sum + booked, 0)).toBe(40);
      expect(await under().usage(tenant)).toEqual({ requests: 40, tokens: 280, estimated: 140 });
      expect(await under().budget(tenant, PERIOD)).toEqual({ spent: 280, used: 280 });
    });

    test('book the noted requests of a process that is gone, each once, and those that are still running later', async () => {
      const [tenant, processId, other] = [fresh('t'), fresh('h'), fresh('h')];
      const { store } = under();
      for (const each of [processId, other]) await store.lease(each, []);
      const requests = [0, 1, 2].map((counter) => ({
        ...{ counter, tenant, period: PERIOD, day: '2026-11-21', key: 'key_1', user: 'usr_1', prompt: 10 },
        ...{ cost: 0, priceVersion: 0, charges: [] },
      }));
      const notes = { processId, note: 1, requests, over: [] };
      for (let told = 0; told < 2; told++) await store.noteRequests(notes);
      await store.noteRequests({ processId, note: 2, requests, over: [] });
      await store.noteRequests({ processId, note: 3, requests: [], over: [2] });
      await store.settle(other, [settlement(processId, 0, { tenant })]);
      await store.changeReservations([{ kind: 'renew-tokens', processId, counter: 1 }], 30_000);
      const options = { holdTtlMs: 600_000, reservationTtlMs: 600_000, settlementKeepMs: 86_400_000 };
      expect(await store.bookLost(options)).toEqual({ booked: 0, more: false });
      const gone = { ...options, holdTtlMs: -1 };
      expect(await store.bookLost(gone)).toEqual({ booked: 1, more: true });
      expect(await store.bookLost(gone)).toEqual({ booked: 0, more: false });
      expect(await under().usage(tenant)).toEqual({ requests: 2, tokens: 17, estimated: 10 });
      await expect.poll(() => store.bookLost({ ...gone, reservationTtlMs: 0 })).toEqual({ booked: 1, more: true });
      expect(await store.bookLost(gone)).toEqual({ booked: 0, more: false });
      expect(await under().usage(tenant)).toEqual({ requests: 3, tokens: 27, estimated: 20 });
      expect(await store.settle(other, [settlement(processId, 2, { tenant })])).toMatchObject({ booked: 0 });
    });

    test('report whether any process recently settled a reservation of a process', async () => {
      const [issuer, settler, silent] = [fresh('h'), fresh('h'), fresh('h')];
      const { store } = under();
      for (const processId of [issuer, silent]) await store.lease(processId, []);
      await store.settle(settler, [settlement(issuer, 70_000, {})]);
      const answers = [issuer, silent, settler].map((processId) => store.settledLately(processId, 60_000));
      expect(await Promise.all(answers)).toEqual([true, false, false]);
      await expect.poll(() => store.settledLately(issuer, 1)).toBe(false);
    });

    test('do nothing for a process that the store does not know, and name it', async () => {
      const [tenant, settler, nobody] = [fresh('t'), fresh('s'), fresh('nobody')];
      const { store } = under();
      const batch = [settlement(nobody, 1, { tenant }), settlement(nobody, 2, { tenant })];
      expect(await store.settle(settler, batch)).toEqual({ booked: 0, unknownProcesses: [nobody] });
      expect((await under().usage(tenant)).requests).toBe(0);
    });

    test('of the settler itself are booked although the store did not know it', async () => {
      const [tenant, settler] = [fresh('t'), fresh('s')];
      const { store } = under();
      expect(await store.settle(settler, [settlement(settler, 1, { tenant })])).toEqual({
        booked: 1,
        unknownProcesses: [],
      });
      expect((await under().usage(tenant)).requests).toBe(1);
    });

    test('are sent to the process that issued the reservation, until it acknowledges them', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const say = speaker(processId);
      await say([]);
      const { store } = under();
      await store.settle(processId, [settlement(processId, 1, { tenant })]);
      await store.settle(fresh('s'), [
        settlement(processId, 2, { tenant, total: 9 }),
        settlement(processId, 3, { tenant, held: false }),
      ]);
      const { settlements } = await say([]);
      expect(settlements.map(({ counters, totals }) => ({ counters, totals }))).toEqual([
        { counters: [2], totals: [9] },
      ]);
      expect((await say([])).settlements).toEqual(settlements);
      const acked = settlements.map(({ id }) => id);
      expect((await say([], acked)).settlements).toEqual([]);
      expect((await say([])).settlements).toEqual([]);
    });

    test('keep the booking of a response that continues until its usage is reported, once and in its tenant only', async () => {
      const [processId, other, tenant, stranger] = [fresh('h'), fresh('h'), fresh('t'), fresh('t')];
      const { store, budget, usage } = under();
      const begun = { tenant, response: 'resp_1', prompt: 60, completion: 150, cached: 0, total: 210, estimated: true };
      const done = { response: 'resp_1', books: false, held: false, prompt: 50, completion: 20, cached: 0, total: 70 };
      await store.lease(processId, []);
      await store.lease(other, []);
      await store.settle(processId, [settlement(processId, 1, begun), settlement(processId, 2, { tenant })]);
      expect(await usage(tenant)).toEqual({ requests: 2, tokens: 217, estimated: 210 });
      await store.settle(other, [settlement(other, 1, { ...done, tenant: stranger })]);
      expect([await usage(stranger), await usage(tenant)]).toMatchObject([{ tokens: 0 }, { tokens: 217 }]);
      const told = [2, 3].map((counter) =>
        settlement(other, counter, { ...done, tenant, period: '2026-12', model: 'x' }),
      );
      await Promise.all([store.settle(other, told), store.settle(processId, told), store.settle(other, told)]);
      await store.settle(processId, [settlement(processId, 1, begun)]);
      await store.settle(other, [settlement(other, 4, { ...done, tenant })]);
      expect(await usage(tenant)).toEqual({ requests: 2, tokens: 77, estimated: 0 });
      expect([(await budget(tenant, PERIOD)).spent, (await budget(tenant, '2026-12')).spent]).toEqual([77, 0]);
    });

    test('correct a response to more than it was booked with, also if both reports arrive at once', async () => {
      const [processId, tenant] = [fresh('h'), fresh('t')];
      const { store, budget, usage } = under();
      await store.lease(processId, []);
      await store.settle(processId, [
        settlement(processId, 1, { tenant, response: 'r', estimated: true }),
        settlement(processId, 2, {
          tenant,
          response: 'r',
          books: false,
          held: false,
          prompt: 3,
          completion: 90,
          total: 93,
        }),
      ]);
      expect([await usage(tenant), (await budget(tenant, PERIOD)).spent]).toEqual([
        { requests: 1, tokens: 93, estimated: 0 },
        93,
      ]);
    });

    test('book nothing where another source counts', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      expect((await store.settle(processId, [settlement(processId, 1, { tenant, books: false })])).booked).toBe(1);
      expect((await under().usage(tenant)).requests).toBe(0);
      expect((await under().budget(tenant, PERIOD)).spent).toBe(0);
    });
  });

  describe('charges', () => {
    const price = { version: 3, input: 3_000_000, output: 15_000_001, cachedInput: 300_000, cacheWrite: 3_750_000 };

    test('are booked once by their unit, with the cost of the usage, however many reports arrive at once', async () => {
      const [tenant, processId, budget] = [fresh('t'), fresh('h'), `bud_${fresh('b')}`];
      const { store } = under();
      await store.lease(processId, []);
      const charges = [
        { unit: 'money', period: `${budget}m 2026-11#0` },
        { unit: 'tokens', period: `${budget}t 2026-W48#2` },
        { unit: 'requests', period: `${budget}r/key_1 2026-11-26T14#0` },
      ] as const;
      const all = Array.from({ length: 30 }, (_, i) =>
        settlement(processId, 2000 + i, {
          ...{ tenant, key: `key_${i % 2}`, cost: 1000 + i, priceVersion: i < 10 ? 0 : 3 },
          charges: charges.slice(0, 1 + (i % 3)),
        }),
      );
      await Promise.all(Array.from({ length: 5 }, (_, i) => store.settle(fresh('s'), shuffled(all, i))));
      const spent = await Promise.all(charges.map(async ({ period }) => (await under().budget(tenant, period)).spent));
      expect(spent).toEqual([30_000 + 435, 20 * 7, 10]);
      const booked = await under().booked(tenant);
      expect(booked.get(`tenant ${tenant}`)).toEqual({ requests: 30, tokens: 210, cost: 30_435 });
      expect(booked.get(`key ${tenant} key_1`)).toEqual({ requests: 15, tokens: 105, cost: 15_225 });
      expect(booked.get(`price ${tenant} m 3`)).toEqual({ requests: 20, tokens: 140, cost: 20_390 });
    });

    test('are booked once for an end whose usage is not', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      const charges = [{ unit: 'requests', period: `bud_${fresh('b')} 2026-11#0` }] as const;
      const end = settlement(processId, 1, { tenant, books: false, total: 0, charges });
      for (let i = 0; i < 2; i++) await store.settle(processId, [end]);
      expect((await under().budget(tenant, charges[0].period)).spent).toBe(1);
      expect((await under().booked(tenant)).size).toBe(0);
    });

    test('and costs reach the process that issued the reservation', async () => {
      const processId = fresh('h');
      const say = speaker(processId);
      await say([]);
      await under().store.settle(fresh('s'), [
        settlement(processId, 1, { tenant: fresh('t'), total: 9, cost: 77 }),
        settlement(processId, 2, { tenant: fresh('t'), total: 0, cost: Number.MAX_SAFE_INTEGER }),
      ]);
      const { settlements } = await say([]);
      expect(settlements.flatMap(({ totals, costs }) => totals.map((total, i) => [total, costs[i]]))).toEqual([
        [9, 77],
        [0, Number.MAX_SAFE_INTEGER],
      ]);
    });

    test('of the noted requests of a process that is gone are booked with the cost of their prompts', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store, budget } = under();
      await store.lease(processId, []);
      const charges = [{ unit: 'money', period: `bud_${fresh('b')} 2026-11#0` }] as const;
      const requests = [1, 2].map((counter) => ({
        ...{ counter, tenant, period: PERIOD, day: '2026-11-21', key: 'key_1', user: 'usr_1', prompt: 10 },
        ...{ cost: 50, priceVersion: 3, charges },
      }));
      await store.noteRequests({ processId, note: 1, requests, over: [] });
      await store.settle(processId, [settlement(processId, 1, { tenant, cost: 90, priceVersion: 3, charges })]);
      const gone = { holdTtlMs: -1, reservationTtlMs: 600_000, settlementKeepMs: 86_400_000 };
      await expect.poll(() => store.bookLost(gone)).toEqual({ booked: 1, more: true });
      await store.settle(processId, [settlement(processId, 2, { tenant, cost: 90, priceVersion: 3, charges })]);
      expect((await budget(tenant, charges[0].period)).spent).toBe(140);
      expect((await under().booked(tenant)).get(`tenant ${tenant}`)).toEqual({ requests: 2, tokens: 17, cost: 140 });
    });

    test('of a response that continues are corrected with the price of its admission', async () => {
      const [tenant, processId, other] = [fresh('t'), fresh('h'), fresh('h')];
      const { store, budget, booked } = under();
      const id = `bud_${fresh('b')}`;
      const periods = [`${id}m 2026-11#0`, `${id}t total#0`, `${id}r total#0`];
      const charges = [
        { unit: 'money', period: periods[0] ?? '' },
        { unit: 'tokens', period: periods[1] ?? '' },
        { unit: 'requests', period: periods[2] ?? '' },
      ] as const;
      const parts = { tenant, response: 'r', estimated: true, prompt: 60, completion: 150, cached: 0, total: 210 };
      await store.lease(processId, []);
      await store.settle(processId, [
        settlement(processId, 1, { ...parts, cost: 2_430, priceVersion: 3, price, charges }),
      ]);
      const done = { response: 'r', books: false, held: false, prompt: 50, completion: 20, cached: 30, cacheWrite: 10 };
      const told = settlement(other, 1, { ...done, tenant, total: 75, period: '2026-12' });
      await Promise.all([store.settle(other, [told]), store.settle(processId, [told]), store.settle(other, [told])]);
      // Input 10 + 5, from the cache 30, to the cache 10, output 20: 45 + 9 + 37.5 + 300.00002, rounded up.
      const spent = await Promise.all(periods.map(async (period) => (await budget(tenant, period)).spent));
      expect(spent).toEqual([392, 75, 1]);
      expect((await booked(tenant)).get(`price ${tenant} m 3`)).toEqual({ requests: 1, tokens: 75, cost: 392 });
    });

    test('reach each threshold of their budget once in its period and epoch, and those of monthly tokens', async () => {
      const [tenant, other, processId] = [fresh('t'), fresh('t'), fresh('h')];
      const id = `bud_${fresh('b')}`;
      const { store, alerts, addBudget, setQuota } = under();
      await store.lease(processId, []);
      await addBudget(tenant, { id, limit: 1000, alerts: [0.5, 0.9, 1], epoch: 2 });
      await setQuota(other, 20);
      let counter = 0;
      const spend = (cost: number, period: string) =>
        settlement(processId, ++counter, { tenant, cost, charges: [{ unit: 'money', period }] });
      await store.settle(processId, [spend(499, `${id} 2026-11#2`), spend(5000, `${id} 2026-11#1`)]);
      expect(await alerts(tenant)).toEqual([]);
      await Promise.all([1, 2, 3].map(() => store.settle(fresh('s'), [spend(1, `${id} 2026-11#2`)])));
      expect(await alerts(tenant)).toEqual([`${id} 2026-11#2 0.5`]);
      await store.settle(processId, [spend(600, `${id} 2026-11#2`), spend(900, `${id}/key_1 2026-12#2`)]);
      await store.settle(processId, [
        spend(600, `${id} 2026-11#2`),
        settlement(processId, ++counter, { tenant: other, total: 15 }),
      ]);
      expect(await alerts(tenant)).toEqual([
        ...[`${id} 2026-11#2 0.5`, `${id} 2026-11#2 0.9`, `${id} 2026-11#2 1`],
        ...[`${id}/key_1 2026-12#2 0.5`, `${id}/key_1 2026-12#2 0.9`],
      ]);
      expect(await alerts(other)).toEqual([]);
      await store.settle(processId, [settlement(processId, ++counter, { tenant: other, total: 1 })]);
      expect(await alerts(other)).toEqual([`${PERIOD} 0.8`]);
      await store.settle(processId, [settlement(processId, ++counter, { tenant: other, total: 4 })]);
      expect(await alerts(other)).toEqual([`${PERIOD} 0.8`, `${PERIOD} 1`]);
    });

    test('never fail a booking, whatever they add up to', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store, budget } = under();
      const period = `bud_${fresh('b')} 2026-13-99T77#0`;
      await store.lease(processId, []);
      const most = { tenant, cost: Number.MAX_SAFE_INTEGER, charges: [{ unit: 'money', period }] } as const;
      for (let round = 0; round < 3; round++) {
        const batch = Array.from({ length: 500 }, (_, i) => settlement(processId, 500 * round + i, most));
        expect((await store.settle(processId, batch)).booked).toBe(500);
      }
      expect((await budget(tenant, period)).spent).toBe(Number.MAX_SAFE_INTEGER);
    });
  });

  describe('renewals of token reservations', () => {
    test('reach the process that holds the reservation, once and with their age, and no other', async () => {
      const [processId, other] = [fresh('h'), fresh('h')];
      const [say, hear] = [speaker(processId), speaker(other)];
      await say([]);
      await hear([]);
      const { store } = under();
      const renew = (name: string, counter: number) => ({ kind: 'renew-tokens' as const, processId: name, counter });
      await store.changeReservations(
        [renew(processId, 2 ** 39), renew(processId, 7), renew(fresh('nobody'), 8)],
        60_000,
      );
      await store.changeReservations([renew(processId, 9)], 60_000);
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect((await hear([])).renewals).toEqual([]);
      const { renewals } = await say([]);
      expect(renewals.flatMap(({ counters }) => counters).sort((a, b) => a - b)).toEqual([7, 9, 2 ** 39]);
      for (const { ageMs } of renewals) expect(ageMs).toBeGreaterThanOrEqual(20);
      expect((await say([])).renewals).toEqual([]);
    });
  });

  describe('collections', () => {
    const request = (processId: string, counter: number, tenant: string) => ({
      processId,
      counter,
      tenant,
      max: 5,
      ttlMs: 60_000,
    });
    const end = (processId: string, counter: number, tenant: string, collections: -1 | 0 | 1, collection?: number) =>
      settlement(processId, counter, { tenant, held: false, books: false, total: 0, collections, collection });
    /**
     * Books creations (`+`) and removals of names (`a`, `b` ...) one after the other, and returns the count after each.
     */
    async function counts(...steps: readonly string[]): Promise<number[]> {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      const seen: number[] = [];
      for (const [i, step] of steps.entries()) {
        const entry = step === '+' ? end(processId, i, tenant, 1) : end(processId, i, tenant, -1, step.charCodeAt(0));
        await store.settle(processId, [entry]);
        seen.push(await under().collections(tenant));
      }
      return seen;
    }

    test('are never too many, though many are created at once', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, i) => under().store.reserveCollection(request(processId, i, tenant))),
      );
      expect(made.filter(Boolean).length).toBe(5);
    });

    test('count when they were made, and no longer when they were removed or never made', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      for (let i = 0; i < 5; i++) expect(await store.reserveCollection(request(processId, i, tenant))).toBe(true);
      expect(await store.reserveCollection(request(processId, 5, tenant))).toBe(false);
      await store.settle(
        processId,
        [0, 1, 2].map((i) => end(processId, i, tenant, 1)).concat(end(processId, 3, tenant, 0)),
      );
      expect(await under().collections(tenant)).toBe(3);
      expect(await store.reserveCollection(request(processId, 6, tenant))).toBe(true);
      expect(await store.reserveCollection(request(processId, 7, tenant))).toBe(false);
      await store.settle(processId, [end(processId, 8, tenant, -1), end(processId, 8, tenant, -1)]);
      expect(await under().collections(tenant)).toBe(2);
      expect(await store.reserveCollection(request(processId, 9, tenant))).toBe(true);
    });

    test('are released once per name, however often the platform reports their removal', async () => {
      expect(await counts('+', '+', '+', 'a', 'a', 'a', 'b', 'a', 'b')).toEqual([1, 2, 3, 2, 2, 2, 1, 1, 1]);
    });

    test('are released again after they were created and removed again', async () => {
      expect(await counts('+', 'a', '+', 'a', 'a', '+', '+', 'a')).toEqual([1, 0, 1, 0, 0, 1, 2, 1]);
    });

    test('are not released again for creations that another removal was matched with, or that are older', async () => {
      // A script that removes a name that never exists beside the one that it creates again.
      const script = ['a', 'ghost', '+'];
      expect(await counts('+', '+', '+', '+', ...script, ...script, ...script)).toEqual([
        1, 2, 3, 4, 3, 2, 3, 2, 2, 3, 2, 2, 3,
      ]);
    });

    test('are released in the order of a batch', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      const steps: (-1 | 1)[] = [1, 1, -1, -1, 1, -1, -1];
      await store.settle(
        processId,
        steps.map((step, i) => end(processId, i, tenant, step, step < 0 ? 9 : undefined)),
      );
      expect(await under().collections(tenant)).toBe(1);
    });

    test('are not fewer than none', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      await store.settle(processId, [end(processId, 1, tenant, -1)]);
      await store.settle(processId, [end(processId, 2, tenant, 1)]);
      expect(await under().collections(tenant)).toBe(1);
    });

    test('are reserved for longer while their creation is renewed, and not again once that has expired', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      const change = (kind: ReservationChange['kind'], counter: number) => ({ kind, processId, counter });
      await store.reserveCollection({ ...request(processId, 0, tenant), max: 2, ttlMs: 300 });
      await store.reserveCollection({ ...request(processId, 1, tenant), max: 2, ttlMs: -1 });
      await store.changeReservations(
        [0, 1, 7].map((counter) => change('renew-collection', counter)),
        60_000,
      );
      await new Promise((resolve) => setTimeout(resolve, 320));
      expect(await store.reserveCollection({ ...request(processId, 2, tenant), max: 2 })).toBe(true);
      expect(await store.reserveCollection({ ...request(processId, 3, tenant), max: 2 })).toBe(false);
      // A renewal that is due sooner takes nothing away.
      await store.changeReservations([change('renew-collection', 0)], 1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(await store.reserveCollection({ ...request(processId, 4, tenant), max: 2 })).toBe(false);
    });

    test('are free at once when the check that reserved one is cancelled, and count if the creation is reported later', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      await store.lease(processId, []);
      for (let i = 0; i < 5; i++) await store.reserveCollection(request(processId, i, tenant));
      await store.changeReservations(
        [3, 4, 99].map((counter) => ({ kind: 'release-collection', processId, counter })),
        60_000,
      );
      expect(await store.reserveCollection(request(processId, 5, tenant))).toBe(true);
      await store.settle(processId, [end(processId, 3, tenant, 1)]);
      expect(await under().collections(tenant)).toBe(1);
      expect(await store.reserveCollection(request(processId, 6, tenant))).toBe(false);
    });

    test('are renewed and released by concurrent statements that name them in any order', async () => {
      const tenants = Array.from({ length: 6 }, () => fresh('t'));
      const processId = fresh('h');
      const { store } = under();
      await store.lease(processId, []);
      for (const [i, tenant] of tenants.entries()) await store.reserveCollection(request(processId, i, tenant));
      await Promise.all(
        Array.from({ length: 8 }, async (_, n) => {
          for (let round = 0; round < 5; round++) {
            const changes = shuffled([...tenants.keys()], n + round).map((counter) => ({
              kind: 'renew-collection' as const,
              processId,
              counter,
            }));
            await store.changeReservations(changes, 60_000);
            await Promise.all(
              shuffled(tenants, n * round).map((tenant) =>
                store.reserveCollection({ ...request(processId, 0, tenant), max: 1 }),
              ),
            );
            await store.settle(processId, [end(processId, 100 + n * 10 + round, tenants[n % 6] ?? '', 0)]);
          }
        }),
      );
      for (const [i, tenant] of tenants.entries())
        expect(await store.reserveCollection({ ...request(processId, 50 + i, tenant), max: 2 })).toBe(true);
    });

    test('without a reported end of their creation do not count forever', async () => {
      const [tenant, processId] = [fresh('t'), fresh('h')];
      const { store } = under();
      for (let i = 0; i < 5; i++) await store.reserveCollection({ ...request(processId, i, tenant), ttlMs: -1 });
      expect(await store.reserveCollection(request(processId, 5, tenant))).toBe(true);
    });
  });
}
