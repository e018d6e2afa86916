/** `postern budget`: the budgets of all tenants, for the operator. */

import type { Static, TSchema } from 'typebox';
import { fieldSentence } from '../domain/problem-details.ts';
import {
  budgetOfName,
  createBudgetAsOperator,
  deleteBudgetAsOperator,
  resetAsOperator,
  showAsOperator,
  updateAsOperator,
} from '../iam/budgets/as-operator.ts';
import { type BudgetRow, budgetChanges, budgetReset, newBudget, shownOf } from '../iam/budgets/entity.ts';
import { type BudgetRef, listBudgets } from '../iam/budgets/queries.ts';
import { statesOf } from '../iam/budgets/state.ts';
import { zonesOf } from '../iam/budgets/state-queries.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, tenantOption, UsageError, wordsOf } from './arguments.ts';
import { printed } from './output.ts';
import { type OperatorParts, printList, scopeOption, withStore } from './with-store.ts';

const ONE_BUDGET = 'Give the name of exactly one budget.';

/** Prints one line for each budget: tenant and name, limit and period, what was spent, and the end of the period. */
export async function budgetListCommand(args: Arguments): Promise<number> {
  await withStore(args, async ({ db: { knex } }, _loaded, { now }) => {
    const scope = await scopeOption(args, knex);
    await printList(
      (page) => listBudgets(knex, scope, {}, page),
      ({ name, tenant_id }) => [name, tenant_id],
      async (rows) => {
        const zones = await zonesOf(
          knex,
          rows.map(({ tenant_id }) => tenant_id),
        );
        const stateOf = await statesOf(knex, rows, (id) => zones.get(id), now());
        return rows.map((row) => lineOf(row, stateOf(row)));
      },
    );
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

export async function budgetGetCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args, ONE_BUDGET);
  return shown(await withBudget(args, name, ({ db, now }, budget) => showAsOperator(db.knex, budget, now())));
}

/** Creates a budget from the members of a JSON object, and prints it. */
export async function budgetCreateCommand(args: Arguments): Promise<number> {
  const [text] = wordsOf(args, 'Give the budget as one JSON object.');
  const tenant = tenantOption(args);
  if (tenant === undefined) throw new UsageError('Give the tenant of the budget with --tenant.');
  const request = await bodyOf(newBudget, text);
  return shown(await withStore(args, (_store, _loaded, parts) => createBudgetAsOperator(parts, tenant, request)));
}

export async function budgetUpdateCommand(args: Arguments): Promise<number> {
  const [name, text] = wordsOf(args, 'Give the name of a budget, and its changes as one JSON object.', 2);
  const request = await bodyOf(budgetChanges, text);
  return shown(await withBudget(args, name, (parts, budget) => updateAsOperator(parts, budget, request)));
}

export async function budgetResetCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args, ONE_BUDGET);
  const reason = args.value('reason');
  if (reason === undefined) throw new UsageError('Give the reason with --reason. The audit log keeps it.');
  const body = await bodyOf(budgetReset, JSON.stringify({ reason }));
  await withBudget(args, name, (parts, budget) => resetAsOperator(parts, budget, body.reason));
  return printed(`Reset: ${name}. A new amount has begun.\n`);
}

export async function budgetDeleteCommand(args: Arguments): Promise<number> {
  const [name] = wordsOf(args, ONE_BUDGET);
  await withBudget(args, name, deleteBudgetAsOperator);
  return printed(`Deleted: ${name}.\n`);
}

function withBudget<T>(
  args: Arguments,
  name: string,
  work: (parts: OperatorParts, budget: BudgetRef) => Promise<T>,
): Promise<T> {
  return withStore(args, async ({ db }, _loaded, parts) =>
    work(parts, await budgetOfName(db.knex, name, tenantOption(args))),
  );
}

function shown(budget: object): number {
  return printed(`${JSON.stringify(budget, undefined, 2)}\n`);
}

/** Rejects with a UsageError for a text that the schema does not accept. */
async function bodyOf<S extends TSchema>(schema: S, text: string): Promise<Static<S>> {
  const value = ((): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      throw new UsageError('The budget is not JSON. Write it like \'{"limit": "100.00"}\'.');
    }
  })();
  // Only commands with a body load the validator.
  const { validatorOf } = await import('../http/validation.ts');
  const read = validatorOf(schema)(value, false);
  if (read.kind === 'valid') return read.value;
  const [first] = read.errors;
  throw new UsageError(printable(first === undefined ? 'The budget is not valid.' : fieldSentence(first)));
}
