/** Notices about budgets of money that name models without a price, whose requests cost 0. */

import { compilePrices, type PriceTable } from '../../decision/prices.ts';
import { readPrices } from '../../store/price-lists.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type Notice, type Noticed, noticed } from '../permissions/notices.ts';
import { MAX_NOTICES } from '../schema/resource-parts.ts';
import type { BudgetResource } from './entity.ts';

/** Adds the notices. It reads the prices only if a budget of money names models. */
export async function noticedBudgets(
  q: Queryable,
  budgets: readonly BudgetResource[],
): Promise<readonly (BudgetResource & Noticed)[]> {
  if (!budgets.some(({ unit, models }) => unit === 'money' && models !== null)) return budgets;
  const table = compilePrices(await readPrices(q));
  return budgets.map((budget) => ({ ...budget, ...noticed(noticesOf(budget, table)) }));
}

function noticesOf({ unit, models }: BudgetResource, table: PriceTable): readonly Notice[] {
  if (unit !== 'money') return [];
  return (models ?? [])
    .flatMap((name, index) => (name.includes('*') || table.of(name) !== undefined ? [] : [unpriced(name, index)]))
    .slice(0, MAX_NOTICES);
}

function unpriced(name: string, index: number): Notice {
  const message = `${name} has no price, so its requests cost 0.`;
  return { kind: 'no_price', path: `/models/${index}`, pattern: name, nearest: null, message };
}
