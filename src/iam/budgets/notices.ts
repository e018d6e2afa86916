/** Notices about budgets of money that name models without a price, whose requests cost 0. */

import type { PriceTable } from '../../decision/prices.ts';
import { type Notice, type Noticed, noticed } from '../permissions/notices.ts';
import { MAX_NOTICES } from '../schema/resource-parts.ts';
import type { BudgetResource } from './entity.ts';

/** Adds the notices. */
export function noticedBudget(budget: BudgetResource, prices: PriceTable): BudgetResource & Noticed {
  return { ...budget, ...noticed(noticesOf(budget, prices)) };
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
