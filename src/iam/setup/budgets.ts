/**
 * The budgets of a tenant in a setup file. The name identifies a budget. A file names users by email address, and keys,
 * which it does not contain, by id.
 */

import { type BudgetName, makeId, parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { formatMoney, parseMoney } from '../../domain/money.ts';
import type { BudgetScope } from '../../domain/records.ts';
import type { Queryable } from '../../store/queryable.ts';
import { type BudgetRow, type BudgetValues, budgetResource, type NewBudget, shownOf } from '../budgets/entity.ts';
import { deleteBudgetRow, listBudgets, missingOf } from '../budgets/queries.ts';
import { readNewBudget } from '../budgets/values.ts';
import { writeBudget, writeNewBudget } from '../budgets/write.ts';
import { invalidField } from '../caller/refusals.ts';
import { canonicalEmail } from '../users/checks.ts';
import { emailsOfUsers, usersOfEmails } from '../users/queries.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import type { SetupMembers, Wanted } from './members.ts';
import type { SetupError } from './read.ts';
import { auditedResource, planResources, readAt, type SetupResource } from './resource-plan.ts';

type SetupScope = Exclude<BudgetScope, { readonly users: unknown }> | { readonly users: readonly string[] };

/** The values of a budget as a file states them. */
interface Values extends Omit<BudgetValues, 'name' | 'limit_amount' | 'applies_to'> {
  readonly limit: string | number;
  readonly applies_to: SetupScope;
}

export interface SetupBudget extends Values {
  readonly row: BudgetRow;
}

export type WantedBudget = Wanted<Values, BudgetName>;
export type BudgetAction = PlannedAction<SetupBudget, Values, BudgetName>;

export const BUDGET_MEMBERS: SetupMembers<Values> = {
  unit: {},
  limit: {},
  period: {},
  timezone: { empty: null },
  applies_to: {},
  per: { initial: 'all' },
  models: { empty: null },
  action: { initial: 'block' },
  alerts: { empty: [] },
  enabled: { initial: true },
};

/** More than a tenant has. */
const MOST = 10_000;

/** Returns the budgets of a tenant, with the email addresses of the users that they select. */
export async function listSetupBudgets(q: Queryable, tenant: TenantId): Promise<readonly SetupBudget[]> {
  const { rows } = await listBudgets(q, { kind: 'one', tenant }, {}, { after: undefined, take: MOST });
  const ids = rows.flatMap(({ applies_to }) => ('users' in applies_to ? applies_to.users : []));
  const emails = await emailsOfUsers(q, tenant, ids);
  return rows.map((row) => {
    const { limit_amount, applies_to, ...values } = row;
    const scope = 'users' in applies_to ? { users: applies_to.users.map((id) => emails.get(id) ?? id) } : applies_to;
    return { ...values, limit: shownOf(row.unit, limit_amount), applies_to: scope, row };
  });
}

/** Returns the limit as an export writes it. */
export function canonicalLimit(limit: string | number): string | number {
  const amount = typeof limit === 'string' ? parseMoney(limit) : undefined;
  return amount === undefined ? limit : formatMoney(amount);
}

/** Returns the scope with the email addresses in their stored form. */
export function canonicalSetupScope(scope: SetupScope): SetupScope {
  return 'users' in scope ? { users: scope.users.map(canonicalEmail) } : scope;
}

/** Returns the keys and users that the budgets of a file name and the tenant does not have. */
export async function absentCallers(
  q: Queryable,
  tenant: TenantId,
  wanted: readonly WantedBudget[] = [],
): Promise<ReadonlySet<string>> {
  const scopes = wanted.flatMap(({ applies_to }) => applies_to ?? []);
  const keys = scopes.flatMap((scope) => ('keys' in scope ? scope.keys : []));
  const users = scopes.flatMap((scope) => ('users' in scope ? scope.users : []));
  const ids = users.flatMap((text) => parseId('usr', text) ?? []);
  const emails = users.filter((text) => parseId('usr', text) === undefined);
  const known = await usersOfEmails(q, tenant, emails);
  return new Set([
    ...(await missingOf(q, tenant, { keys })),
    ...(await missingOf(q, tenant, { users: ids })),
    ...emails.filter((email) => !known.has(email)),
  ]);
}

/**
 * @param wanted undefined: the file does not state the budgets. @param prune deletes budgets that it does not name
 * @param isAbsent reports whether a key or a user does not exist after the setup
 */
export function planBudgets(
  tenant: TenantId,
  wanted: readonly WantedBudget[] | undefined,
  stored: readonly SetupBudget[],
  prune: boolean,
  isAbsent: (caller: string) => boolean,
  errors: SetupError[],
): readonly BudgetAction[] {
  const actions = planResources(budgetResources(tenant), wanted, stored, prune, errors);
  const places = new Map<string, string>(wanted?.map(({ key, at }) => [key, at]));
  for (const { name, before, after } of actions) {
    if (after === undefined) continue;
    const at = places.get(name) ?? '';
    const isUnknown = (caller: string) => isAbsent(caller) && !keeps(before, caller);
    errors.push(...unknownCallers(tenant, name, after.applies_to, `${at}/applies_to`, isUnknown));
    // Its users are found when the budget is written, because the file may create them.
    const scope: BudgetScope = 'users' in after.applies_to ? { users: [] } : after.applies_to;
    readAt(at, errors, () => readNewBudget(requestOf(name, after, scope)));
  }
  return actions;
}

/**
 * Reports whether the stored budget has this id. A budget keeps a key or a user that was deleted after it was written.
 */
function keeps(before: SetupBudget | undefined, id: string): boolean {
  const scope: BudgetScope = before?.row.applies_to ?? { tenant: true };
  return ('keys' in scope ? scope.keys : 'users' in scope ? scope.users : []).some((kept) => kept === id);
}

function unknownCallers(
  tenant: TenantId,
  budget: BudgetName,
  scope: SetupScope,
  at: string,
  isUnknown: (caller: string) => boolean,
): readonly SetupError[] {
  const errorsOf = (member: 'keys' | 'users', names: readonly string[], type: string, advice: string) =>
    names.flatMap((name, i) => {
      const message = `The budget ${budget} applies to the ${type} ${name}, which the tenant ${tenant} does not have. ${advice}`;
      return isUnknown(name) ? [{ path: `${at}/${member}/${i}`, message }] : [];
    });
  const keysDiffer = 'Keys have other ids in each database. Name keys of this database, or select them by metadata.';
  if ('keys' in scope) return errorsOf('keys', scope.keys, 'key', keysDiffer);
  const addUser = 'Add the user to the file, or correct the budget.';
  return 'users' in scope ? errorsOf('users', scope.users, 'user', addUser) : [];
}

function requestOf(name: BudgetName, values: Values, applies_to: BudgetScope): NewBudget {
  const { unit, limit, period, timezone, per, models, action, alerts, enabled } = values;
  return { name, unit, limit, period, timezone, applies_to, per, models, action, alerts, enabled };
}

/** The budgets that count one request are checked after all actions. */
const atTheEnd = async (): Promise<void> => undefined;

function budgetResources(tenant: TenantId): SetupResource<SetupBudget, Values, BudgetName> {
  const read = async (context: ApplyContext, name: BudgetName, values: Values): Promise<BudgetValues> =>
    readNewBudget(requestOf(name, values, await scopeOf(context, tenant, values.applies_to)));
  return auditedResource<SetupBudget, Values, BudgetName, Pick<SetupBudget, 'row'>>({
    type: 'budget',
    tenant,
    members: BUDGET_MEMBERS,
    keyOf: ({ row }) => row.name,
    idOf: ({ row }) => row.id,
    show: ({ row }) => budgetResource(row),
    insert: async (context, name, values) => {
      const { trx, nowMs, random } = context;
      const ref = { id: makeId('bud', nowMs, random(10)), tenant_id: tenant };
      return { row: await writeNewBudget(trx, ref, await read(context, name, values), atTheEnd) };
    },
    update: async (context, { row }, values) => ({
      row: await writeBudget(context.trx, row, await read(context, row.name, values), atTheEnd),
    }),
    remove: ({ trx }, { row }) => deleteBudgetRow(trx, row.id),
  });
}

/** @throws Refusal `invalid_field` for an email address that no user of the tenant has */
async function scopeOf({ trx, flushUsers }: ApplyContext, tenant: TenantId, scope: SetupScope): Promise<BudgetScope> {
  if (!('users' in scope)) return scope;
  await flushUsers();
  const ids = await usersOfEmails(trx, tenant, scope.users);
  const users = scope.users.map((text): UserId => {
    const id = ids.get(text) ?? parseId('usr', text);
    if (id !== undefined) return id;
    throw invalidField('/applies_to/users', `The tenant ${tenant} has no user with the email address ${text}.`);
  });
  return { users };
}
