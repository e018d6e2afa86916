/** A budget as the form holds it, and the members of a request that it becomes. */

import type { Budget, BudgetChanges, NewBudget } from '../../../../client/index.ts';
import { metadataFault, metadataOf, pairsIn } from '../../api/metadata.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import type { Pair } from '../../ui/pairs-field.tsx';
import { fractionOf, percentOf } from './percent.ts';

export const UNITS = ['money', 'tokens', 'requests'] as const;
export const PERIODS = ['hour', 'day', 'week', 'month', 'total'] as const;
export const TARGETS = ['tenant', 'keys', 'users', 'roles', 'metadata'] as const;
export const PERS = ['all', 'key', 'user'] as const;
export const ACTIONS = ['block', 'report'] as const;
export type Unit = (typeof UNITS)[number];
export type Target = (typeof TARGETS)[number];

/** A budget has a single selector. The form keeps the input of the others, so that trying one loses nothing. */
export interface AppliesFields {
  readonly target: Target;
  readonly keys: readonly string[];
  readonly users: readonly string[];
  readonly roles: readonly string[];
  readonly metadata: readonly Pair[];
}

export interface BudgetFields {
  readonly name: string;
  /** Together, because the unit decides the form of the limit: a decimal for money, otherwise digits. */
  readonly amount: { readonly unit: Unit; readonly limit: string };
  readonly period: (typeof PERIODS)[number];
  /** Empty: the tenant's. */
  readonly timezone: string;
  readonly applies: AppliesFields;
  readonly per: (typeof PERS)[number];
  /** Empty: all. */
  readonly models: readonly string[];
  readonly action: (typeof ACTIONS)[number];
  /** Percent. */
  readonly alerts: readonly string[];
  /** Only of a new budget. The page of a budget has a button for it. */
  readonly enabled?: boolean;
}

export const NEW_BUDGET: BudgetFields = {
  name: '',
  amount: { unit: 'money', limit: '' },
  period: 'month',
  timezone: '',
  applies: { target: 'tenant', keys: [], users: [], roles: [], metadata: [] },
  per: 'all',
  models: [],
  action: 'block',
  alerts: ['80', '100'],
  enabled: true,
};

const NAME = /^[^\p{Cc}\p{Cs}]{1,64}$/u;
const MAX_MONEY = 9_000_000;
const MONEY = /^\d{1,7}(?:\.\d{1,9})?$/;
const COUNT = /^\d{1,15}$/;

/** Reports whether the server takes the text as the name of a budget. */
export function isBudgetName(name: string): boolean {
  return NAME.test(name.trim());
}

export function fieldsOf(budget: Budget): BudgetFields {
  const { name, unit, limit, period, timezone, applies_to: to, per, models, action, alerts } = budget;
  return {
    name,
    amount: { unit, limit: String(limit) },
    period,
    timezone: timezone ?? '',
    applies: {
      target: TARGETS.find((target) => to[target] !== undefined) ?? 'tenant',
      keys: to.keys ?? [],
      users: to.users ?? [],
      roles: to.roles ?? [],
      metadata: pairsIn(to.metadata ?? {}),
    },
    per,
    models: models ?? [],
    action,
    alerts: alerts.map(percentOf),
  };
}

/** Returns the fields as members of a request. An absent field is an absent member. */
export function changesOf({ name, amount, timezone, applies, models, alerts, ...same }: Partial<BudgetFields>) {
  return {
    ...same,
    ...(name === undefined ? {} : { name }),
    ...(amount === undefined ? {} : { unit: amount.unit, limit: limitOf(amount) }),
    ...(timezone === undefined ? {} : { timezone: timezone.trim() === '' ? null : timezone.trim() }),
    ...(applies === undefined ? {} : { applies_to: scopeOf(applies) }),
    ...(models === undefined ? {} : { models: models.length === 0 ? null : models }),
    ...(alerts === undefined ? {} : { alerts: alerts.map(fractionOf) }),
  } satisfies BudgetChanges;
}

/** Returns the request for a new budget. */
export function newBudgetOf(fields: BudgetFields): NewBudget {
  const { name, amount, period, applies } = fields;
  const { unit } = amount;
  return { ...changesOf(fields), name, unit, limit: limitOf(amount), period, applies_to: scopeOf(applies) };
}

function limitOf({ unit, limit }: BudgetFields['amount']): string | number {
  return unit === 'money' ? limit : Number(limit);
}

function scopeOf({ target, keys, users, roles, metadata }: AppliesFields): NewBudget['applies_to'] {
  switch (target) {
    case 'tenant':
      return { tenant: true };
    case 'keys':
      return { keys };
    case 'users':
      return { users };
    case 'roles':
      return { roles };
    case 'metadata':
      return { metadata: metadataOf(metadata) };
    default:
      return target satisfies never;
  }
}

/** Returns why the budget cannot be sent; undefined: it can. */
export function faultOf({ name, amount, applies }: BudgetFields): string | undefined {
  if (name === '') return text.nameNeeded;
  if (!isBudgetName(name)) return text.nameFault;
  if (amount.limit === '') return text.limitNeeded;
  return limitFault(amount) ?? appliesFault(applies);
}

export function limitFault({ unit, limit }: BudgetFields['amount']): string | undefined {
  if (limit === '') return undefined;
  if (unit !== 'money') return COUNT.test(limit) ? undefined : text.limitFaults.count;
  return MONEY.test(limit) && Number(limit) <= MAX_MONEY ? undefined : text.limitFaults.money;
}

function appliesFault(applies: AppliesFields): string | undefined {
  const { target } = applies;
  if (target === 'tenant') return undefined;
  if (applies[target].length === 0) return text.needs[target];
  return target === 'metadata' ? metadataFault(applies.metadata) : undefined;
}

/** Returns why a text is no threshold of an alert; undefined: it is one. */
export function alertFault(percent: string): string | undefined {
  return /^\d{1,4}(?:\.\d{1,4})?$/.test(percent) && Number(percent) > 0 && Number(percent) <= 1000
    ? undefined
    : text.alertFault;
}

/** Reports whether a change makes the current period begin at 0. */
export function startsOver(changed: BudgetFields, base: BudgetFields): boolean {
  return (
    changed.amount.unit !== base.amount.unit ||
    changed.period !== base.period ||
    changed.timezone !== base.timezone ||
    changed.per !== base.per
  );
}
