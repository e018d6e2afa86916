import { expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { BudgetRegistry } from '../../src/metering/budget-registry.ts';

const MAX = 100;

test('the budgets in use are bounded, and each tenant leaves half of the free places to the others', () => {
  const registry = new BudgetRegistry(MAX, () => undefined);
  const use = (tenant: string, n: number) =>
    registry.find({ tenant, period: `bud_${n} total#0`, unit: 'tokens', endsMs: Number.POSITIVE_INFINITY }, 0);
  const used = (tenant: string): number => {
    for (let n = 0; ; n++) {
      try {
        use(tenant, n);
      } catch (error) {
        expect(error).toBeInstanceOf(Fault);
        return n;
      }
    }
  };
  expect([used('greedy'), used('second'), used('third')]).toEqual([50, 25, 13]);
  expect(use('greedy', 0)).toBe(use('greedy', 0));
  for (const budget of [...registry.all()]) if (budget.tenant === 'greedy') registry.forget(budget);
  expect([registry.size, used('fourth'), used('greedy')]).toEqual([38, 31, 16]);
});
