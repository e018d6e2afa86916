/** `postern budget`: the budgets of all tenants, for the operator. */

import { randomBytes } from 'node:crypto';
import type { Static, TSchema } from 'typebox';
import { fieldSentence } from '../domain/problem-details.ts';
import { validatorOf } from '../http/validation.ts';
import {
  budgetOfName,
  createBudgetAsOperator,
  deleteBudgetAsOperator,
  resetAsOperator,
  showAsOperator,
  updateAsOperator,
} from '../iam/budgets/as-operator.ts';
import { type BudgetRow, budgetChanges, budgetReset, newBudget, shownOf } from '../iam/budgets/entity.ts';
import { listBudgets } from '../iam/budgets/queries.ts';
import { statesOf } from '../iam/budgets/state.ts';
import { zonesOf } from '../iam/budgets/state-queries.ts';
import type { Store } from '../server/store.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, tenantOption, UsageError } from './arguments.ts';
import { NO_CACHE, withStore } from './with-store.ts';

const PAGE_ROWS = 200;

const partsOf = ({ db }: Store) => ({
  db,
  ...NO_CACHE,
  now: Date.now,
  random: (size: number) => randomBytes(size),
});

/** Prints one line for each budget: tenant and name, limit and period, what was spent, and the end of the period. */
export async function budgetListCommand(args: Arguments): Promise<number> {
  const tenant = tenantOption(args);
  const scope = tenant === undefined ? ({ kind: 'every' } as const) : ({ kind: 'one', tenant } as const);
  await withStore(args, async ({ db: { knex } }) => {
    for (let after: readonly string[] | undefined; ; ) {
      const { rows, more } = await listBudgets(knex, scope, {}, { after, take: PAGE_ROWS });
      const zones = await zonesOf(
        knex,
        rows.map(({ tenant_id }) => tenant_id),
      );
      const stateOf = await statesOf(knex, rows, (id) => zones.get(id), Date.now());
      for (const row of rows) process.stdout.write(lineOf(row, stateOf(row)));
      const last = rows.at(-1);
      if (!more || last === undefined) return;
      after = [last.name, last.tenant_id];
    }
  });
  return 0;
}

function lineOf(row: BudgetRow, { spent, resets_at }: ReturnType<Awaited<ReturnType<typeof statesOf>>>): string {
  const { tenant_id, name, unit, limit_amount, period, per, action, enabled } = row;
  const state = [
    spent === null ? `an amount for each ${per}` : `${spent} spent`,
    ...(resets_at === null ? [] : [`until ${resets_at}`]),
    ...(action === 'report' ? ['blocks nothing'] : []),
    ...(enabled ? [] : ['disabled']),
  ];
  return `${tenant_id}/${name}  ${shownOf(unit, limit_amount)} ${unit} per ${period}  ${state.join('; ')}\n`;
}

/** Prints a budget as JSON. */
export async function budgetGetCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args);
  const budget = await withStore(args, async ({ db: { knex } }) =>
    showAsOperator(knex, await budgetOfName(knex, name, tenantOption(args)), Date.now()),
  );
  return printed(budget);
}

/** Creates a budget from the members of a JSON object, and prints it. */
export async function budgetCreateCommand(args: Arguments): Promise<number> {
  const [text] = wordsOf(args, 'Give the budget as one JSON object.');
  const tenant = tenantOption(args);
  if (tenant === undefined) throw new UsageError('Give the tenant of the budget with --tenant.');
  const request = bodyOf(newBudget, text);
  return printed(await withStore(args, (store) => createBudgetAsOperator(partsOf(store), tenant, request)));
}

/** Changes the members of a JSON object, and prints the budget. */
export async function budgetUpdateCommand(args: Arguments): Promise<number> {
  const [name, text] = wordsOf(args, 'Give the name of a budget, and its changes as one JSON object.', 2);
  const request = bodyOf(budgetChanges, text);
  return printed(
    await withStore(args, async (store) =>
      updateAsOperator(partsOf(store), await budgetOfName(store.db.knex, name, tenantOption(args)), request),
    ),
  );
}

/** Begins a new amount. */
export async function budgetResetCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args);
  const reason = args.value('reason');
  if (reason === undefined) throw new UsageError('Give the reason with --reason. The audit log keeps it.');
  const body = bodyOf(budgetReset, JSON.stringify({ reason }));
  await withStore(args, async (store) =>
    resetAsOperator(partsOf(store), await budgetOfName(store.db.knex, name, tenantOption(args)), body.reason),
  );
  process.stdout.write(`Reset: ${name}. A new amount has begun.\n`);
  return 0;
}

export async function budgetDeleteCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args);
  await withStore(args, async (store) =>
    deleteBudgetAsOperator(partsOf(store), await budgetOfName(store.db.knex, name, tenantOption(args))),
  );
  process.stdout.write(`Deleted: ${name}.\n`);
  return 0;
}

function printed(budget: object): number {
  process.stdout.write(`${JSON.stringify(budget, undefined, 2)}\n`);
  return 0;
}

/** @throws UsageError for a text that the schema does not accept */
function bodyOf<S extends TSchema>(schema: S, text: string): Static<S> {
  const value = ((): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      throw new UsageError('The budget is not JSON. Write it like \'{"limit": "100.00"}\'.');
    }
  })();
  const read = validatorOf(schema)(value, false);
  if (read.kind === 'valid') return read.value;
  const [first] = read.errors;
  throw new UsageError(printable(first === undefined ? 'The budget is not valid.' : fieldSentence(first)));
}

function wordsOf(args: Arguments, message?: string): readonly [string];
function wordsOf(args: Arguments, message: string, count: 2): readonly [string, string];
function wordsOf({ words }: Arguments, message = 'Give the name of exactly one budget.', count = 1): readonly string[] {
  if (words.length !== count) throw new UsageError(message);
  return words;
}
