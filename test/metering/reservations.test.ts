import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Account } from '../../src/metering/account.ts';
import { type EndedReservation, EXPIRY_PERIOD_MS, Reservations } from '../../src/metering/reservations.ts';
import { runs } from '../support/properties.ts';

const account = (): Account => ({ unit: 'tokens', isBooked: true, release: () => undefined });
const LISTS = [[account()], [account(), account()], []];
const [LIST = []] = LISTS;

const lifeMs = fc.oneof(fc.constant(30_000), fc.integer({ min: -1000, max: 60_000 }));
const which = fc.nat({ max: 60 });
const steps = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('add' as const),
        list: fc.nat({ max: 2 }),
        gap: fc.nat({ max: 90 }),
        lifeMs,
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('take' as const), which }) },
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('renew' as const), which, lifeMs }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 12_000 }) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('expire' as const), most: fc.nat({ max: 8 }) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('evict' as const) }) },
  ),
  { maxLength: 150, size: 'max' },
);

interface Twin {
  readonly accounts: readonly Account[];
  readonly tokens: number;
  period: number;
}

const periodOf = (ms: number): number => Math.floor(ms / EXPIRY_PERIOD_MS);

function endedOf(twin: Twin | undefined): EndedReservation | undefined {
  return twin && { accounts: twin.accounts, tokens: twin.tokens, money: 2 * twin.tokens };
}

/** The naive twin: looks at all of them each time. */
class Twins {
  readonly all = new Map<number, Twin>();

  get earliest(): number {
    return Math.min(...[...this.all.values()].map(({ period }) => period));
  }

  /** Forgets the one that was taken, which must be one of those that expire first. */
  took(tokens: number): void {
    const [counter, twin] = [...this.all].find((entry) => entry[1].tokens === tokens) ?? [];
    expect(twin?.period).toBe(this.earliest);
    if (counter !== undefined) this.all.delete(counter);
  }
}

describe('reservations', () => {
  test('agree with a naive twin in any order of adding, taking, renewing and expiring', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const reservations = new Reservations();
        const twins = new Twins();
        let nowMs = 0;
        let last = -1;
        const counterOf = (which: number): number => [...twins.all.keys()][which] ?? which * 7;
        for (const step of all) {
          switch (step.kind) {
            case 'add': {
              last += 1 + step.gap;
              const accounts = LISTS[step.list] ?? LIST;
              // The tokens identify the reservation.
              reservations.add(last, accounts, { tokens: last, money: 2 * last }, nowMs + step.lifeMs);
              twins.all.set(last, { accounts, tokens: last, period: periodOf(nowMs + step.lifeMs) });
              break;
            }
            case 'take': {
              const counter = counterOf(step.which);
              expect(reservations.take(counter)).toEqual(endedOf(twins.all.get(counter)));
              twins.all.delete(counter);
              break;
            }
            case 'renew': {
              const counter = counterOf(step.which);
              const twin = twins.all.get(counter);
              expect(reservations.renew(counter, nowMs + step.lifeMs)).toBe(twin !== undefined);
              if (twin !== undefined) twin.period = Math.max(twin.period, periodOf(nowMs + step.lifeMs));
              break;
            }
            case 'advance':
              nowMs += step.ms;
              break;
            case 'expire':
              for (let i = 0; i < step.most; i++) {
                const expired = reservations.takeExpired(nowMs);
                expect(expired !== undefined).toBe(twins.earliest < periodOf(nowMs));
                if (expired === undefined) break;
                twins.took(expired.tokens);
              }
              break;
            case 'evict': {
              const oldest = reservations.takeOldest();
              expect(oldest !== undefined).toBe(twins.all.size > 0);
              if (oldest !== undefined) twins.took(oldest.tokens);
              break;
            }
            default:
              step satisfies never;
          }
          expect(reservations.size).toBe(twins.all.size);
        }
        for (const [counter, twin] of twins.all) expect(reservations.take(counter)).toEqual(endedOf(twin));
        expect([reservations.size, reservations.takeExpired(Number.MAX_SAFE_INTEGER)]).toEqual([0, undefined]);
      }),
      { numRuns: runs(500) },
    );
  });

  test('never expire before their time, and at most 250 ms after it', () => {
    const reservations = new Reservations();
    for (const lifeMs of [0, 1, 249, 250, 1234]) {
      reservations.add(lifeMs, LIST, { tokens: 1, money: 3 }, lifeMs);
      expect(reservations.takeExpired(lifeMs)).toBeUndefined();
      expect(reservations.takeExpired(lifeMs + EXPIRY_PERIOD_MS)).toEqual({ accounts: LIST, tokens: 1, money: 3 });
    }
  });

  test('by the hundred thousand are renewed in any order, and those that were not are found one by one', () => {
    const reservations = new Reservations();
    const COUNT = 200_000;
    for (let i = 0; i < COUNT; i++) reservations.add(i * 3, LIST, { tokens: i, money: 0 }, 30_000);
    for (let i = 0; i < COUNT; i++) {
      const counter = ((i * 7919) % COUNT) * 3;
      if (counter % 1000 !== 0) expect(reservations.renew(counter, 60_000)).toBe(true);
    }
    let expired = 0;
    while (reservations.takeExpired(45_000) !== undefined) expired += 1;
    expect([expired, reservations.size]).toEqual([COUNT / 1000, COUNT - COUNT / 1000]);
  });
});
