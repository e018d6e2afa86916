/**
 * Budgets: limits of what callers of a tenant may spend in a period. The definition of their columns and of what the API
 * shows, accepts and may change.
 */

import { type Static, Type } from 'typebox';
import type { BudgetName, KeyId, RoleName, UserId } from '../../domain/ids.ts';
import { formatMoney, MAX_MONEY } from '../../domain/money.ts';
import {
  BUDGET_PERIODS,
  BUDGET_UNITS,
  type BudgetRecord,
  type BudgetScope,
  type Metadata,
} from '../../domain/records.ts';
import {
  changesComponent,
  column,
  derived,
  hidden,
  newComponent,
  type ResourceOf,
  type RowOf,
  resourceOf,
  shownComponent,
} from '../schema/entity.ts';
import { aBudgetName, aName, aResourceName } from '../schema/grammar.ts';
import { asksAlso, component, described, flagOf, nullable } from '../schema/keywords.ts';
import { instant, keyId, notices, prefixedId, tenantId, text, texts, userId } from '../schema/resource-parts.ts';
import { closed, metadataKey, oneOf, searchText, title } from '../schema/schemas.ts';

/** The largest number of keys, users or roles that one budget selects, and of models. */
const MAX_SELECTED = 1000;
const MAX_MODELS = 100;
const MAX_ALERTS = 10;
const MAX_ALERT = 10;

/** An amount in the unit of a budget: a decimal text of money, otherwise a number. */
type Amount = string | number;
const MONEY = '^(0|[1-9][0-9]*)(\\.[0-9]{1,9})?$';

const amountLimit = Type.Unsafe<Amount>({
  type: ['string', 'integer'],
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  maxLength: 20,
  ...asksAlso({ pattern: MONEY }),
  description: `Money: a decimal text with at most 9 places, at most ${MAX_MONEY}. Tokens and requests: a number.`,
  examples: ['100.00'],
});
export const shownAmount = (description: string) => Type.Unsafe<Amount>({ type: ['string', 'integer'], description });
const shownOrNull = (description: string) =>
  Type.Unsafe<Amount | null>({ type: ['string', 'integer', 'null'], description });
const shownInstant = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description });

const selected = <T>(item: object) =>
  Type.Unsafe<readonly T[]>({ type: 'array', items: item, minItems: 1, maxItems: MAX_SELECTED });

const scopeWith = (users: object) => ({
  type: 'object',
  properties: {
    tenant: { type: 'boolean', enum: [true], description: 'Every request in the tenant.' },
    keys: selected<KeyId>({ type: 'string', maxLength: 64, ...asksAlso({ pattern: '^key_[0-9a-z]{26}$' }) }),
    users,
    roles: selected<RoleName>({ type: 'string', maxLength: 64, ...aName }),
    metadata: Type.Unsafe<Metadata>({
      type: 'object',
      description: 'Keys with all of these pairs in their metadata.',
      minProperties: 1,
      maxProperties: 16,
      propertyNames: metadataKey,
      additionalProperties: { type: 'string', maxLength: 512 },
    }),
  },
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  description:
    'The callers whose requests count: exactly one member. Those of `users` and `roles` are these users and the keys that they own.',
  examples: [{ tenant: true }, { metadata: { team: 'search' } }],
});

const appliesTo = Type.Unsafe<BudgetScope>(
  scopeWith(selected<UserId>({ type: 'string', maxLength: 64, ...asksAlso({ pattern: '^usr_[0-9a-z]{26}$' }) })),
);

/** For a setup file, which names users by email address. */
export const setupScope = Type.Unsafe<
  Exclude<BudgetScope, { readonly users: unknown }> | { readonly users: readonly string[] }
>(scopeWith(selected<string>({ type: 'string', minLength: 1, maxLength: 254 })));

const shownScope = Type.Unsafe<BudgetScope>({
  type: 'object',
  properties: {
    tenant: { type: 'boolean', description: 'Every request in the tenant.' },
    keys: { type: 'array', items: { type: 'string' } },
    users: { type: 'array', items: { type: 'string' } },
    roles: { type: 'array', items: { type: 'string' } },
    metadata: { type: 'object', additionalProperties: { type: 'string' } },
  },
  description: 'The callers whose requests count. It has one member.',
});

const models = Type.Unsafe<readonly string[] | null>({
  type: ['array', 'null'],
  items: { type: 'string', maxLength: 512, ...aResourceName },
  minItems: 1,
  maxItems: MAX_MODELS,
  description: 'Names or globs of models. Null: all requests, also those without a model.',
});

const alerts = Type.Unsafe<readonly number[]>(
  Type.Array(Type.Number({ exclusiveMinimum: 0, maximum: MAX_ALERT }), {
    maxItems: MAX_ALERTS,
    uniqueItems: true,
    description: 'Fractions of the limit. Each that is reached is announced once in a period.',
    examples: [[0.8, 1]],
  }),
);

const amounts = {
  spent: shownAmount('Booked in the period.'),
  reserved: shownAmount('Set aside for requests in progress, and fetched ahead of need.'),
  remaining: shownAmount('The limit without the spent and the reserved part; 0 if more was spent.'),
};

const ofCaller = Type.Object({
  id: Type.Unsafe<string>({ type: 'string', description: 'A key, or a user.' }),
  ...amounts,
});
const ofKey = Type.Object({
  key_id: nullable(keyId),
  user_id: nullable(userId),
  spent: amounts.spent,
});
const ofModel = Type.Object({ model: text, spent: amounts.spent });

/** The use of a budget in its current period. */
const budgetState = component(
  'BudgetState',
  Type.Object(
    {
      starts_at: shownInstant('The beginning of the period. Null: it has none.'),
      resets_at: shownInstant('The end of the period. Null: it has none.'),
      spent: shownOrNull('Null: each key or user has its own amount.'),
      reserved: shownOrNull('For requests in progress, and fetched ahead of need. Null as `spent`.'),
      remaining: shownOrNull('The limit without the spent and the reserved part, at least 0. Null as `spent`.'),
      callers: Type.Optional(
        Type.Array(ofCaller, {
          description: 'The keys or users that used most. Only in one budget whose callers have their own amounts.',
        }),
      ),
      by_key: Type.Optional(
        Type.Array(ofKey, {
          description:
            'The keys and users that used most, by the usage of the days of the period. Only in one budget, and not for hours.',
        }),
      ),
      by_model: Type.Optional(Type.Array(ofModel, { description: 'The same by model.' })),
    },
    {
      description:
        'Absent after a change. Without `callers`, `by_key` and `by_model` if the period has more than 200,000 rows of usage to sum.',
    },
  ),
);
export type SpentState = Static<typeof budgetState>;

export const period = described(
  oneOf(...BUDGET_PERIODS),
  'The calendar period in which the limit holds. Weeks begin on Monday. `total`: it never resets by itself.',
);
export const unit = described(
  oneOf(...BUDGET_UNITS),
  'The unit of the amounts: money in the currency of the prices, tokens, or requests.',
);
const per = described(
  oneOf('all', 'key', 'user'),
  '`all`: the callers share the amount. `key`, `user`: each has its own. Default: all.',
);
const action = described(
  oneOf('block', 'report'),
  '`report`: requests are counted, and none is blocked. Default: block.',
);
const timezone = {
  description: "The time zone of the calendar periods. Null: the tenant's, or else UTC.",
  examples: ['Europe/Berlin'],
};
const enabled = flagOf('Whether requests count and can be blocked. Default: true.');

export const budget = {
  id: column(prefixedId('bud')),
  tenant_id: column(tenantId),
  name: column(Type.Unsafe<BudgetName>(Type.String()), {
    accepts: Type.Unsafe<string>(
      Type.String({
        maxLength: 64,
        description: 'Unique in the tenant. The server removes surrounding blanks.',
        ...aBudgetName,
      }),
    ),
    changes: true,
  }),
  unit: column(unit, { accepts: unit, changes: true }),
  limit_amount: hidden<number>(),
  limit: derived(shownAmount('A decimal text for money, otherwise a number.'), { accepts: amountLimit, changes: true }),
  period: column(period, { accepts: period, changes: true }),
  timezone: column(nullable(Type.String(timezone)), {
    accepts: Type.Optional(nullable({ ...title(64), ...timezone })),
    changes: true,
  }),
  applies_to: column(shownScope, { accepts: appliesTo, changes: true }),
  per: column(per, {
    accepts: Type.Optional(per),
    changes: true,
  }),
  models: column(Type.Unsafe<readonly string[] | null>(nullable(texts)), {
    accepts: Type.Optional(models),
    changes: true,
  }),
  action: column(action, {
    accepts: Type.Optional(action),
    changes: true,
  }),
  alerts: column(
    Type.Unsafe<readonly number[]>(
      Type.Array(Type.Number(), { description: 'Fractions of the limit that are announced when they are reached.' }),
    ),
    {
      accepts: Type.Optional(alerts),
      changes: true,
    },
  ),
  enabled: column(enabled, { accepts: Type.Optional(enabled), changes: true }),
  epoch: hidden<number>(),
  state: derived(Type.Optional(budgetState)),
  created_at: column(instant),
  updated_at: column(instant),
};

export const budgetFilter = Type.Object({
  q: searchText('Any part of the name, in any case.'),
  unit: Type.Optional(described(unit, 'Only budgets in this unit.')),
  period: Type.Optional(described(period, 'Only budgets with this period.')),
  action: Type.Optional(described(action, 'Only budgets with this `action`.')),
  enabled: Type.Optional(flagOf('Only budgets that are, or are not, in force.')),
});
export type BudgetFilter = Static<typeof budgetFilter>;

const own = { limit: shownAmount('A decimal text for money, otherwise a number.'), ...amounts };

/** A budget as the caller whose requests it counts sees it. */
export const ownBudget = component(
  'OwnBudget',
  Type.Object({
    name: text,
    unit,
    period,
    action,
    models: Type.Unsafe<string[] | null>(nullable(Type.Array(text))),
    resets_at: shownInstant('The end of the period. Null: it has none.'),
    limit: Type.Optional(own.limit),
    spent: Type.Optional(own.spent),
    reserved: Type.Optional(own.reserved),
    remaining: Type.Optional(own.remaining),
  }),
);
export type OwnBudget = Static<typeof ownBudget>;

export interface BudgetRow extends RowOf<typeof budget> {}
export interface BudgetResource extends ResourceOf<typeof budget> {}

/** The columns that requests set. */
export type BudgetValues = Omit<BudgetRow, 'id' | 'tenant_id' | 'epoch' | 'created_at' | 'updated_at'>;

export const ShownBudget = shownComponent('Budget', budget, notices);

const EXAMPLE = {
  name: 'search-team',
  unit: 'money',
  limit: '250.00',
  period: 'month',
  applies_to: { metadata: { team: 'search' } },
  alerts: [0.8, 1],
};

export const newBudget = newComponent('NewBudget', budget, { examples: [EXAMPLE] });
export const budgetChanges = changesComponent('BudgetChanges', budget, { examples: [{ limit: '300.00' }] });
export const budgetReset = component(
  'BudgetReset',
  Type.Object(
    { reason: Type.Unsafe<string>({ ...title(500), description: 'Why. The audit log keeps it.' }) },
    { ...closed, examples: [{ reason: 'A test spent the amount.' }] },
  ),
);

export type NewBudget = Static<typeof newBudget>;
export type BudgetChanges = Static<typeof budgetChanges>;

/** Returns an amount as the API shows it. */
export function shownOf(unit: BudgetRow['unit'], amount: number | bigint): Amount {
  return unit === 'money' ? formatMoney(BigInt(amount)) : Number(amount);
}

/** @param state absent in the answer to a change */
export function budgetResource(row: BudgetRow, state?: SpentState): BudgetResource {
  const limit = shownOf(row.unit, row.limit_amount);
  return resourceOf(budget, row, state === undefined ? { limit } : { limit, state });
}

/** Returns the part of a budget that decisions read. */
export function budgetRecord(row: BudgetValues & Pick<BudgetRow, 'id' | 'epoch'>): BudgetRecord {
  const { id, name, unit, limit_amount, period, timezone, applies_to, per, models, action, epoch } = row;
  return {
    id,
    name,
    unit,
    limit: limit_amount,
    period,
    timezone: timezone ?? undefined,
    appliesTo: applies_to,
    per,
    models: models ?? undefined,
    action,
    epoch,
  };
}
