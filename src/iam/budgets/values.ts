/** The values of a new or changed budget, checked beyond the schema. Its scope is checked in the transaction. */

import { validateModels, validateTimezone } from '../../decision/validate.ts';
import { type BudgetName, parseBudgetName, parseId, parseRoleName } from '../../domain/ids.ts';
import { formatMoney, MAX_MONEY, NANO, parseMoney } from '../../domain/money.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { BudgetScope } from '../../domain/records.ts';
import { BUDGET_NAME_FORM, invalidFields } from '../caller/refusals.ts';
import type { BudgetChanges, BudgetValues, NewBudget } from './entity.ts';

const MAX_NANO = BigInt(MAX_MONEY) * NANO;

/** @throws Refusal `invalid_field` that names every invalid member */
export function readNewBudget(request: NewBudget): BudgetValues {
  const defaults = { timezone: null, per: 'all', models: null, action: 'block', alerts: [], enabled: true } as const;
  const { limit, name: text, ...members } = { ...defaults, ...request };
  const errors: FieldError[] = [];
  const name = nameOf(text, errors);
  return checked({ ...members, limit_amount: amountOf(members.unit, limit, errors) }, name, errors);
}

/** @throws Refusal like `readNewBudget` */
export function readBudgetChanges(before: BudgetValues, request: BudgetChanges): BudgetValues {
  const { limit, name: text, ...members } = request;
  const errors: FieldError[] = [];
  const unit = members.unit ?? before.unit;
  const name = text === undefined ? before.name : nameOf(text, errors);
  const limit_amount = limit === undefined ? keptAmount(before, unit, errors) : amountOf(unit, limit, errors);
  return checked({ ...before, ...members, limit_amount }, name, errors);
}

/** Reports whether a change begins a new amount. */
export function beginsNewAmount(before: BudgetValues, after: BudgetValues): boolean {
  return (
    before.unit !== after.unit ||
    before.period !== after.period ||
    before.timezone !== after.timezone ||
    before.per !== after.per
  );
}

/** @param name undefined if it is one of the errors */
function checked(
  values: Omit<BudgetValues, 'name'>,
  name: BudgetName | undefined,
  errors: readonly FieldError[],
): BudgetValues {
  const all = [...errors, ...budgetErrors(values)];
  if (name === undefined || all.length > 0) throw invalidFields(all);
  return { ...values, name };
}

function nameOf(text: string, errors: FieldError[]): BudgetName | undefined {
  const name = parseBudgetName(text);
  if (name === undefined) errors.push({ path: '/name', message: BUDGET_NAME_FORM });
  return name;
}

function keptAmount(before: BudgetValues, unit: BudgetValues['unit'], errors: FieldError[]): number {
  if ((before.unit === 'money') !== (unit === 'money'))
    errors.push({ path: '/limit', message: `must be given in ${unit}, because the unit changes` });
  return before.limit_amount;
}

function amountOf(unit: BudgetValues['unit'], limit: string | number, errors: FieldError[]): number {
  if (unit !== 'money') {
    if (typeof limit === 'number') return limit;
    errors.push({ path: '/limit', message: `must be a number of ${unit}` });
    return 0;
  }
  const amount = typeof limit === 'string' ? parseMoney(limit) : undefined;
  if (amount !== undefined && amount <= MAX_NANO) return Number(amount);
  const most = formatMoney(MAX_NANO);
  errors.push({
    path: '/limit',
    message: `must be a decimal text such as "100.00", with at most 9 places, from 0 to ${most}`,
  });
  return 0;
}

function budgetErrors({ timezone, models, applies_to }: Omit<BudgetValues, 'name'>): readonly FieldError[] {
  return [
    ...(timezone === null ? [] : validateTimezone(timezone, '/timezone')),
    ...(models === null ? [] : validateModels(models, '/models')),
    ...scopeErrors(applies_to),
  ];
}

/** Ids and names without the right form name nothing that exists. */
function scopeErrors(scope: BudgetScope): readonly FieldError[] {
  const malformed = (kind: string, names: readonly string[], isOne: (text: string) => boolean, what: string) =>
    names.flatMap((name, i) =>
      isOne(name) ? [] : [{ path: `/applies_to/${kind}/${i}`, message: `must be the ${what}` }],
    );
  if ('keys' in scope) return malformed('keys', scope.keys, (id) => parseId('key', id) !== undefined, 'id of a key');
  if ('users' in scope)
    return malformed('users', scope.users, (id) => parseId('usr', id) !== undefined, 'id of a user');
  if ('roles' in scope)
    return malformed('roles', scope.roles, (name) => parseRoleName(name) !== undefined, 'name of a role');
  return [];
}
