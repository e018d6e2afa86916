import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import type { Settlement } from '../../src/metering/ports.ts';
import { processIdOf, ReservationIds, type ReservationKind } from '../../src/metering/reservation-ids.ts';
import { type FinishedUsage, settlementOf, spentBy } from '../../src/metering/settlement.ts';
import { Settler } from '../../src/metering/settler.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';

const KEY = Buffer.alloc(16, 1);
const HOLDER = 'ab'.repeat(8);
const MINUTE = Date.UTC(2026, 10, 30, 23, 30) / 60_000;

function finished(parts: Partial<FinishedUsage>): FinishedUsage {
  return {
    reservation: '',
    tenant: 'acme',
    user: 'usr_1',
    key: undefined,
    model: 'm',
    usage: undefined,
    status: 200,
    textBytes: undefined,
    responseBytes: 0,
    upstream: 'answered',
    ...parts,
  };
}

describe('what a request spent', () => {
  const usage = { prompt: 10, completion: 20, cached: 5, total: 30, model: 'm-2026' };
  const reserved = { prompt: 11, answer: 100 };

  test('is the usage that the upstream reported, for any status and reservation', () => {
    for (const status of [200, 500, 0]) {
      for (const upstream of ['untouched', 'forwarded', 'answered'] as const) {
        expect(spentBy(finished({ usage, status, upstream, textBytes: 4000 }), reserved)).toEqual({
          prompt: 10,
          completion: 20,
          cached: 5,
          cacheWrite: 0,
          total: 30,
          estimated: false,
        });
      }
    }
  });

  test.each<[string, Partial<FinishedUsage>, number]>([
    ['the text of the answer, in tokens of 4 bytes, rounded up', { textBytes: 209, responseBytes: 9000 }, 53],
    ['nothing of an answer whose text is empty', { textBytes: 0, responseBytes: 9000 }, 0],
    ['the bytes of an answer in which no text was found', { responseBytes: 81 }, 21],
    ['no more than the bound of the answer', { textBytes: 4000 }, 100],
    ['no more than the bound of an answer in which no text was found', { responseBytes: 4000 }, 100],
    ['the bound of an answer whose encoding hides its text', { textBytes: 'hidden', responseBytes: 81 }, 100],
    [
      'the bound of such an answer that broke off',
      { textBytes: 'hidden', responseBytes: 8, upstream: 'forwarded' },
      100,
    ],
    ['nothing of such an answer that Envoy gave', { textBytes: 'hidden', status: 503, upstream: 'forwarded' }, 0],
    ['the text of an answer that broke off', { textBytes: 41, responseBytes: 900, upstream: 'forwarded' }, 11],
    ['nothing of the answer that Envoy gave instead', { status: 503, responseBytes: 900, upstream: 'forwarded' }, 0],
    ['nothing of an answer that its client did not wait for', { status: 0, upstream: 'forwarded' }, 0],
  ])('is without usage the estimate of the prompt and %s', (_name, parts, completion) => {
    const spent = { prompt: 11, completion, cached: 0, cacheWrite: 0, total: 11 + completion, estimated: true };
    expect(spentBy(finished(parts), reserved)).toEqual(spent);
  });

  test('is nothing without usage if the upstream answered with an error, or never got the request', () => {
    for (const status of [301, 400, 429, 500]) {
      expect(spentBy(finished({ status, textBytes: 400, responseBytes: 400 }), reserved)).toMatchObject({
        total: 0,
        estimated: false,
      });
    }
    for (const status of [0, 503]) {
      expect(spentBy(finished({ status, upstream: 'untouched' }), reserved)).toMatchObject({
        total: 0,
        estimated: false,
      });
    }
  });

  test('is the whole reservation while a response continues after its answer, regardless of the usage in the answer', () => {
    const response = { id: 'resp_1', complete: false, background: true };
    const whole = { prompt: 11, completion: 100, cached: 0, cacheWrite: 0, total: 111, estimated: true };
    const none = { prompt: 0, completion: 0, cached: 0, total: 0, model: undefined };
    expect(spentBy(finished({ response, textBytes: 0 }), reserved)).toEqual(whole);
    expect(spentBy(finished({ response, usage: none }), reserved)).toEqual(whole);
    expect(spentBy(finished({ response: { ...response, background: false } }), reserved)).toEqual(whole);
    expect(spentBy(finished({ response, textBytes: 4, upstream: 'forwarded' }), reserved)).toEqual(whole);
    // A stream that its client left, and with it the upstream.
    const left = finished({ response: { ...response, background: false }, textBytes: 4, upstream: 'forwarded' });
    expect(spentBy(left, reserved)).toMatchObject({ total: 12 });
    expect(spentBy(finished({ response: { ...response, complete: true }, usage }), reserved)).toMatchObject({
      total: 30,
    });
    expect(spentBy(finished({ response, status: 400 }), reserved)).toMatchObject({ total: 0 });
  });

  test('is booked for a response that continues, and corrected by a request for it that spends nothing itself', () => {
    const ids = new ReservationIds(KEY, HOLDER);
    const end = (kind: ReservationKind, parts: Partial<FinishedUsage>, books = true) => {
      const reservation = ids.read(ids.issue(MINUTE, kind, 0, reserved).id);
      return reservation === undefined ? undefined : settlementOf(finished(parts), reservation, books);
    };
    const begun = { id: 'resp_1', complete: false, background: true };
    const done = { ...begun, complete: true };
    expect(end('budget', { response: begun })).toMatchObject({ response: 'resp_1', books: true, total: 111 });
    expect(end('usage', { response: { ...begun, id: undefined } })).toMatchObject({
      response: undefined,
      books: true,
      total: 111,
    });
    expect(end('budget', { response: done, usage })).toMatchObject({ response: undefined, books: true, total: 30 });
    expect(end('reads-response', { response: done, usage })).toMatchObject({
      response: 'resp_1',
      books: false,
      total: 30,
      held: false,
    });
    for (const parts of [
      { response: begun },
      { response: done },
      { response: done, usage, status: 404 },
      { usage },
      {},
    ])
      expect(end('reads-response', parts)).toMatchObject({ response: undefined, books: false });
    expect(end('reads-response', { response: done, usage }, false)).toMatchObject({ response: undefined });
    expect(end('budget', { response: begun }, false)).toMatchObject({ response: undefined, books: false });
  });

  test('is on a route without a reservation what the answer reported, and is not booked otherwise', () => {
    const ids = new ReservationIds(KEY, HOLDER);
    const end = (parts: Partial<FinishedUsage>, books = true) => {
      const reservation = ids.read(ids.issue(MINUTE, 'reports-usage', 0, { prompt: 0, answer: 0 }).id);
      return reservation === undefined ? undefined : settlementOf(finished(parts), reservation, books);
    };
    expect(end({ usage })).toMatchObject({
      books: true,
      held: false,
      prompt: 10,
      completion: 20,
      total: 30,
      estimated: false,
    });
    expect(end({ usage }, false)).toMatchObject({ books: false, total: 0 });
    for (const parts of [{ textBytes: 400 }, { responseBytes: 4000 }, { textBytes: 'hidden' as const }])
      expect(end(parts)).toMatchObject({ books: false, total: 0 });
  });

  test('charges on a route without a reservation the budgets of requests also without usage', () => {
    const ids = new ReservationIds(KEY, HOLDER);
    const charges = (['money', 'tokens', 'requests'] as const).map((unit) => ({ unit, period: `bud_${unit} total#0` }));
    const charged = (kind: ReservationKind, books: boolean, parts: Partial<FinishedUsage> = {}) => {
      const reservation = ids.read(ids.issue(MINUTE, kind, 0, { prompt: 0, answer: 0 }).id);
      if (reservation === undefined) throw new Error('the id is not readable');
      return settlementOf(finished(parts), reservation, books, { price: undefined, charges })?.charges;
    };
    for (const kind of ['reports-usage', 'reports-usage-held'] as const) {
      expect([charged(kind, true), charged(kind, true, { usage })]).toEqual([charges.slice(2), charges]);
      expect(charged(kind, false)).toEqual([]);
    }
    expect(charged('reads-response', true)).toEqual([]);
  });

  test('is an estimate of the part that the upstream did not report', () => {
    const partial = { ...usage, completion: undefined, total: undefined };
    expect(spentBy(finished({ usage: partial, textBytes: 41 }), reserved)).toEqual({
      prompt: 10,
      completion: 11,
      cached: 5,
      cacheWrite: 0,
      total: 21,
      estimated: true,
    });
    const answered = { ...usage, prompt: undefined, cached: 0, total: undefined };
    expect(spentBy(finished({ usage: answered, textBytes: 4000 }), reserved)).toEqual({
      prompt: 11,
      completion: 20,
      cached: 0,
      cacheWrite: 0,
      total: 31,
      estimated: true,
    });
  });
});

describe('a settlement', () => {
  const reservation = {
    processId: HOLDER,
    counter: 7,
    minute: MINUTE,
    kind: 'usage' as const,
    offset: 60,
    prompt: 11,
    answer: 100,
  };

  test('has the cost by the price that the check carried, and keeps that price only where a correction needs it', () => {
    const usage = { prompt: 10, completion: 20, cached: 5, total: 30, model: 'm-2026' };
    const price = { version: 3, input: 2e6, output: 5e6, cachedInput: 1e6, cacheWrite: 3e6 };
    const charge = { unit: 'money', period: 'bud_1 total#0' } as const;
    const charges = { price, charges: [charge] };
    const response = { id: 'resp_1', complete: false, background: true };
    expect(settlementOf(finished({ usage: { ...usage, cacheWrite: 2 } }), reservation, true, charges)).toMatchObject({
      ...{ cost: 3 * 2 + 5 * 1 + 2 * 3 + 20 * 5, priceVersion: 3, price: undefined, charges: [charge] },
    });
    expect(settlementOf(finished({ response }), reservation, true, charges)).toMatchObject({
      ...{ cost: 11 * 2 + 100 * 5, price, charges: [charge] },
    });
    expect(settlementOf(finished({ usage }), reservation, false, charges)).toMatchObject({ cost: 0, charges: [] });
  });

  test('is booked on the day and in the month that the tenant had at the check', () => {
    expect(settlementOf(finished({}), reservation, true)).toMatchObject({ day: '2026-12-01', period: '2026-12' });
    expect(settlementOf(finished({}), { ...reservation, offset: -300 }, true)).toMatchObject({
      day: '2026-11-30',
      period: '2026-11',
    });
  });

  test('names no model that a failed request made up, and no text that the store cannot keep', () => {
    expect(settlementOf(finished({ status: 404, model: 'made-up' }), reservation, true)?.model).toBe('');
    expect(settlementOf(finished({ model: `a\0${'😀'.repeat(200)}` }), reservation, true)?.model).toBe(
      `a${'😀'.repeat(127)}`,
    );
  });

  test('counts a collection where the upstream made or removed one', () => {
    const of = (kind: ReservationKind, status: number) =>
      settlementOf(finished({ status }), { ...reservation, kind }, true)?.collections;
    expect([of('adds-collection', 201), of('adds-collection', 409), of('removes-collection', 204)]).toEqual([1, 0, -1]);
    expect([of('removes-collection', 404), of('usage', 200), of('budget', 200)]).toEqual([0, undefined, undefined]);
  });

  test('spends nothing where another source counts', () => {
    expect(settlementOf(finished({ responseBytes: 400 }), reservation, false)).toMatchObject({
      total: 0,
      books: false,
    });
  });
});

const ONE = { prompt: 0, answer: 1 };

describe('reservation ids', () => {
  const kinds = fc.constantFrom<ReservationKind>('usage', 'budget', 'adds-collection', 'removes-collection');

  test('say in any process who issued them, when and for what', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            later: fc.nat({ max: 2 }),
            kind: kinds,
            offset: fc.integer({ min: -720, max: 840 }),
            prompt: fc.nat({ max: 0xff_ffff }),
            answer: fc.nat({ max: 0xffff_ffff }),
          }),
          { maxLength: 50 },
        ),
        (requests) => {
          const issuer = new ReservationIds(KEY, HOLDER);
          const reader = new ReservationIds(KEY, '0'.repeat(16));
          let minute = MINUTE;
          const counters = new Set<number>();
          for (const { later, kind, offset, prompt, answer } of requests) {
            minute += later;
            const { id, counter } = issuer.issue(minute, kind, offset, { prompt, answer });
            expect(reader.read(id)).toEqual({ processId: HOLDER, counter, minute, kind, offset, prompt, answer });
            counters.add(counter);
          }
          expect(counters.size).toBe(requests.length);
        },
      ),
    );
  });

  test('of more than fits keep the largest that does', () => {
    const ids = new ReservationIds(KEY, HOLDER);
    const { id } = ids.issue(MINUTE, 'usage', 0, { prompt: 2 ** 40, answer: 2 ** 52 });
    expect(ids.read(id)).toMatchObject({ prompt: 0xff_ffff, answer: 0xffff_ffff });
  });

  test('are never issued twice, however many', () => {
    const ids = new ReservationIds(KEY, HOLDER);
    const issued = Array.from({ length: 5000 }, (_, i) => ids.issue(MINUTE + Math.floor(i / 700), 'usage', 0, ONE));
    expect(new Set(issued.map(({ id }) => id)).size).toBe(5000);
    expect(new Set(issued.map(({ counter }) => counter)).size).toBe(5000);
  });

  test('made without the key name a process that does not exist', () => {
    const { id } = new ReservationIds(Buffer.alloc(16, 2), HOLDER).issue(MINUTE, 'usage', 0, ONE);
    expect(new ReservationIds(KEY, HOLDER).read(id)?.processId).not.toBe(HOLDER);
  });

  test('of another form are none', () => {
    const ids = new ReservationIds(KEY, HOLDER);
    const { id } = ids.issue(MINUTE, 'usage', 0, ONE);
    for (const text of ['', id.slice(1), `${id}0`, id.toUpperCase(), `${id.slice(0, 32)}ff${id.slice(34)}`]) {
      expect(ids.read(text)).toBeUndefined();
    }
    expect(processIdOf(new Uint8Array(8).fill(255))).toBe('f'.repeat(16));
  });
});

describe('settling', () => {
  const one = (counter: number): Settlement => {
    const made = settlementOf(
      finished({}),
      { processId: HOLDER, counter, minute: MINUTE, kind: 'budget', offset: 0, prompt: 0, answer: 1 },
      true,
    );
    if (made === undefined) throw new Error('no settlement');
    return made;
  };

  function settler(settle: (counters: readonly number[]) => void, maxWaiting = 1000) {
    const counts = newCounts();
    const booked: number[] = [];
    const made = new Settler({
      store: {
        settle: async (_settler, settlements) => {
          settle(settlements.map(({ counter }) => counter));
          return { booked: settlements.length, unknownProcesses: [] };
        },
      },
      processId: HOLDER,
      monotonicMs: () => 0,
      maxWaiting,
      counts,
      onBooked: ({ counter }) => booked.push(counter),
    });
    return { made, counts, booked };
  }

  test('drops the one that the store refuses, and books all others', async () => {
    const { made, counts, booked } = settler((counters) => {
      if (counters.includes(3)) throw new Error('not a number of tokens');
    });
    for (let i = 0; i < 6; i++) made.add(one(i));
    await made.flush();
    expect([booked, counts.dropped, made.waiting]).toEqual([[0, 1, 2, 4, 5], 1, 0]);
  });

  test('finds the one that the store refuses among 500 in three runs', async () => {
    const { made, counts, booked } = settler((counters) => {
      if (counters.includes(300)) throw new Error('not a number of tokens');
    });
    for (let i = 0; i < 500; i++) made.add(one(i));
    for (let run = 0; run < 3; run++) await made.flush();
    expect([booked.length, counts.dropped, made.waiting]).toEqual([499, 1, 0]);
  });

  test('books in smaller batches the ends that the store cannot book together within its timeout', async () => {
    const { made, counts, booked } = settler((counters) => {
      if (counters.length > 100) throw new Fault('the database did not answer in time');
    });
    for (let i = 0; i < 500; i++) made.add(one(i));
    for (let run = 0; run < 10; run++) await made.flush();
    expect(booked).toEqual(Array.from({ length: 500 }, (_, i) => i));
    expect([counts.dropped, made.waiting]).toEqual([0, 0]);
  });

  test('books whole batches again after an outage', async () => {
    let away = true;
    const sizes: number[] = [];
    const { made } = settler((counters) => {
      if (away) throw new Fault('away');
      sizes.push(counters.length);
    }, 5000);
    for (let i = 0; i < 5000; i++) made.add(one(i));
    for (let run = 0; run < 20; run++) await made.flush();
    away = false;
    await made.flush();
    expect([sizes.at(0), sizes.at(-2), made.waiting]).toEqual([1, 500, 0]);
  });

  test('keeps all that could not be booked because the store was away, up to its bound', async () => {
    let away = true;
    const { made, counts, booked } = settler(() => {
      if (away) throw new Fault('away');
    }, 4);
    for (let i = 0; i < 6; i++) made.add(one(i));
    await made.flush();
    expect([made.waiting, counts.dropped, counts.faults]).toEqual([4, 2, 1]);
    away = false;
    await made.flush();
    expect(booked).toEqual([0, 1, 2, 3]);
  });
});
