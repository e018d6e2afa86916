/** Compares a budget with the usage of the last full month, day by day. */

import { type Static, Type } from 'typebox';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField, throwIfInvalid } from '../caller/refusals.ts';
import { component, countOf, nullable } from '../schema/keywords.ts';
import { momentOf, spanOfPeriod } from '../usage/period.ts';
import { type BudgetValues, type NewBudget, shownAmount, shownOf } from './entity.ts';
import { isTooMuch, MOST_ROWS_SUMMED, type PreviewedPeriod, previewedPeriods, zonesOf } from './state-queries.ts';
import { readNewBudget } from './values.ts';
import { unknownInScope } from './write.ts';

const day = Type.String({ format: 'date' });
const count = Type.Integer({ minimum: 0 });

const blocked = {
  requests: count,
  blocked_requests: countOf(
    'Requests after the limit was reached. On that day, the share of its requests that the rest of its amount is.',
  ),
  blocked: shownAmount('The amount beyond the limit.'),
};

export const budgetPreview = component(
  'BudgetPreview',
  Type.Object({
    from: day,
    to: day,
    periods: nullable(
      Type.Array(
        Type.Object({
          starts_on: Type.String({ format: 'date', description: 'The first day of the period.' }),
          spent: shownAmount('By all callers together.'),
          reached_on: nullable(
            Type.String({ format: 'date', description: 'The first day on which an amount was spent.' }),
          ),
          callers: countOf('Amounts: 1 for a shared budget.'),
          callers_reached: countOf('Amounts that were spent.'),
          ...blocked,
        }),
        { description: 'Null: usage is kept by day, so there are no numbers for hours.' },
      ),
    ),
    ...blocked,
  }),
);

/**
 * Weeks begin on a Monday, so the first one may begin before the month. A budget without a period is compared as if it
 * began with the month. Roles and metadata are those of now.
 * @throws Refusal like the creation of the budget, except for a taken name and for quotas; `invalid_field` if there is
 *   too much usage to sum
 */
export async function previewBudget(
  { db: { knex } }: Pick<AdminParts, 'db'>,
  caller: Caller,
  request: NewBudget,
): Promise<Static<typeof budgetPreview>> {
  const values = readNewBudget(request);
  const { tenant, nowMs } = caller;
  throwIfInvalid(await unknownInScope(knex, tenant, values.applies_to, undefined));
  const span = await lastMonth(knex, tenant, nowMs);
  if (values.period === 'hour') return { ...span, periods: null, ...shown(values, NOTHING) };
  const usage = {
    tenant,
    appliesTo: values.applies_to,
    models: values.models ?? undefined,
    unit: values.unit,
    ...span,
  };
  if (await isTooMuch(knex, usage)) {
    const most = MOST_ROWS_SUMMED.toLocaleString('en-US');
    throw invalidField(
      '/applies_to',
      `The server compares a budget with at most ${most} rows of usage, and the last month has more. Preview it for some keys or users.`,
    );
  }
  const periods = await previewedPeriods(knex, usage, values);
  return {
    ...span,
    periods: periods.map(({ starts_on, reached_on, callers, callers_reached, spent, ...rest }) => ({
      starts_on,
      spent: shownOf(values.unit, spent),
      reached_on,
      callers,
      callers_reached,
      ...shown(values, rest),
    })),
    ...shown(values, periods.reduce(added, NOTHING)),
  };
}

type Blocked = Pick<PreviewedPeriod, 'requests' | 'blocked_requests' | 'blocked'>;
const NOTHING: Blocked = { requests: 0, blocked_requests: 0, blocked: 0n };

function added(sum: Blocked, one: Blocked): Blocked {
  return {
    requests: sum.requests + one.requests,
    blocked_requests: sum.blocked_requests + one.blocked_requests,
    blocked: sum.blocked + one.blocked,
  };
}

function shown({ unit }: BudgetValues, { requests, blocked_requests, blocked: amount }: Blocked) {
  return { requests, blocked_requests, blocked: shownOf(unit, amount) };
}

/** Returns the days of the last full month in the tenant's time zone. */
async function lastMonth(knex: Parameters<typeof zonesOf>[0], tenant: Caller['tenant'], nowMs: number) {
  const zone = (await zonesOf(knex, [tenant])).get(tenant);
  const [year = 0, month = 0] = momentOf(zone, nowMs).period.split('-').map(Number);
  return spanOfPeriod(new Date(Date.UTC(year, month - 2)).toISOString().slice(0, 7));
}
