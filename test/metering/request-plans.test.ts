/** The plans of requests in memory. */

import { expect, test } from 'vitest';
import { NO_PRICES } from '../../src/decision/prices.ts';
import { RequestPlans } from '../../src/metering/request-plans.ts';
import { askOf } from './support/world.ts';

test('plans of all callers and models have one bound, and a plan that was dropped is made again', () => {
  const plans = new RequestPlans({
    prices: () => NO_PRICES,
    find: () => expect.fail('the requests have no budget'),
    maxWeight: 10,
  });
  const { principal } = askOf({});
  const callers = [{ ...principal }, { ...principal }];
  const ask = (n: number) => plans.of(askOf({ principal: callers[n % 2] ?? principal, model: `model-${n}` }), 0);
  const kept = Array.from({ length: 10 }, (_, n) => ask(n));
  for (const [n, plan] of kept.entries()) expect(ask(n)).toBe(plan);
  const last = ask(10);
  const again = ask(0);
  expect(again).not.toBe(kept[0]);
  expect(again).toEqual(kept[0]);
  expect([ask(10), ask(0)]).toEqual([last, again]);
  expect(ask(10)).toBe(last);
});
