/** The schemas of usage and limits, in requests and responses, and their types. */

import { type Static, Type } from 'typebox';
import { ordersBy } from '../list/sort.ts';
import { aTenantId } from '../schema/grammar.ts';
import {
  component,
  countOf,
  described,
  nullable,
  optionalText,
  shownText,
  shownTextOrNull,
} from '../schema/keywords.ts';
import { closed, names, oneOf, page, tenantFilter, title } from '../schema/schemas.ts';

export const USAGE_GROUPS = ['model', 'key', 'user', 'day', 'tenant'] as const;
export type UsageGroup = (typeof USAGE_GROUPS)[number];

/** The counts of each row. */
export const SUMS = [
  'requests',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'total_tokens',
  'estimated_tokens',
] as const;
export type UsageOrder = 'id' | 'cost' | 'unpriced_requests' | (typeof SUMS)[number];

/** `id`: the model, key, user, day or tenant. */
export const usageOrders = ordersBy<UsageOrder>(['id', 'cost', 'unpriced_requests', ...SUMS], 'id');

/** The most days of one answer. */
export const MAX_DAYS = 366;

const day = (description: string) =>
  Type.Optional(
    Type.String({ format: 'date', maxLength: 10, pattern: '^[1-9]', description, examples: ['2026-11-30'] }),
  );

export const usageFilters = Type.Object(
  {
    ...page,
    ...tenantFilter,
    period: Type.Optional(
      Type.String({
        pattern: '^[1-9][0-9]{3}-(0[1-9]|1[0-2])$',
        maxLength: 7,
        description: "A calendar month in the tenant's time zone. Default: the current month.",
        examples: ['2026-11'],
      }),
    ),
    from: day("The first day, in the tenant's time zone, in place of `period`."),
    to: day(`The last day, which is included, at most ${MAX_DAYS} days after \`from\`. Default: today.`),
    group_by: Type.Optional(described(oneOf(...USAGE_GROUPS), '`tenant` needs `tenant_id=*`. Default: no grouping.')),
    key_id: optionalText(64, 'Only the usage of this API key, in the total and in each group.'),
    sort: usageOrders.parameter,
    include: names,
  },
  closed,
);

/** An id in the form of the API's ids. The server does not check that it exists. */
function idOf(prefix: 'key' | 'usr') {
  return nullable(
    Type.String({
      maxLength: 64,
      pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`,
      examples: [`${prefix}_01jd5k3v8m2x7q9w4r6t0y1z3b`],
    }),
  );
}

/** The sum of a thousand events is exact in a number. */
const MAX_EVENT_TOKENS = 1_000_000_000;
const tokens = Type.Integer({ minimum: 0, maximum: MAX_EVENT_TOKENS });

export const MAX_EVENTS = 1000;

const event = component(
  'UsageEvent',
  Type.Object(
    {
      id: Type.String({
        minLength: 1,
        maxLength: 128,
        pattern: '^[!-~]+$',
        description: 'An id that the client chooses. An event with the id of an earlier event is not counted again.',
      }),
      model: title(256),
      key_id: Type.Optional(idOf('key')),
      user_id: Type.Optional(idOf('usr')),
      time: Type.String({
        format: 'date-time',
        maxLength: 64,
        description: 'The time of the usage, within the last 35 days.',
      }),
      prompt_tokens: tokens,
      completion_tokens: tokens,
      cached_tokens: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_EVENT_TOKENS,
          description: 'The part of the prompt tokens that the upstream read from its cache.',
        }),
      ),
      cache_write_tokens: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: MAX_EVENT_TOKENS,
          description:
            'The part of the prompt tokens that the upstream wrote to its cache. It counts in the cost only.',
        }),
      ),
      total_tokens: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 2 * MAX_EVENT_TOKENS,
          description: 'Default: the sum of prompt and completion tokens.',
        }),
      ),
      requests: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 1_000_000,
          description: 'The number of requests that the event counts. Default: 1.',
        }),
      ),
    },
    closed,
  ),
);

export type UsageEvent = Readonly<Static<typeof event>>;

export const usageEvents = component(
  'UsageEvents',
  Type.Object(
    {
      tenant_id: Type.Optional(Type.String(aTenantId)),
      events: Type.Array(event, { minItems: 1, maxItems: MAX_EVENTS }),
    },
    closed,
  ),
);

const count = Type.Integer({ minimum: 0 });

const sums = {
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: countOf('The part of the prompt tokens that the upstream read from its cache.'),
  total_tokens: count,
  estimated_tokens: countOf('The part of the total that was estimated and not reported by the upstream.'),
  cost: Type.String({
    description:
      'In `prices.currency`, by the prices when the requests were admitted. Requests without a price cost nothing.',
    examples: ['12.50'],
  }),
  unpriced_requests: Type.Optional(
    countOf(
      'Requests that named a model without a price. Absent with `key_id`, and in the rows of keys and users, for which the server does not count them.',
    ),
  ),
};

const UsageSums = component('UsageSums', Type.Object(sums));

export type UsageSums = Readonly<Static<typeof UsageSums>>;

/** The name of the key, user or tenant of a row. */
const nameOfMember = Type.Optional(
  shownTextOrNull(
    'With `include=names`, grouped by key, user or tenant: its name. null: there is none, or the caller may not read it.',
  ),
);

const perhaps = (description: string) => Type.Optional(nullable(Type.String({ description })));

const UsageRow = component(
  'UsageRow',
  Type.Object({
    model: perhaps('Grouped by model. null: the request named none, or failed.'),
    key: perhaps('Grouped by key: its id. null: without a key.'),
    user: perhaps('Grouped by user: its id, of a key its owner. null: a key of its tenant.'),
    day: Type.Optional(Type.String({ format: 'date', description: "The day, in the tenant's time zone." })),
    tenant: Type.Optional(shownText('Grouped by tenant: its id.')),
    name: nameOfMember,
    ...sums,
  }),
);

/** The sums of one group. */
export type UsageRow = Readonly<Static<typeof UsageRow>>;

export const usageReport = component(
  'Usage',
  Type.Object({
    period: nullable(Type.String({ description: 'Null if the request has `from`.', examples: ['2026-11'] })),
    from: Type.String({ format: 'date', description: 'The first day.' }),
    to: Type.String({ format: 'date', description: 'The last day, which is included.' }),
    timezone: Type.String({ description: 'The time zone of the days.', examples: ['Europe/Berlin'] }),
    tenant_id: shownText('`*` for all tenants together.'),
    total: UsageSums,
    data: Type.Array(UsageRow, {
      description: 'One row for each model, key, user, day or tenant with usage, in order. Empty without `group_by`.',
    }),
    has_more: Type.Boolean(),
    next_cursor: shownTextOrNull('The `cursor` of the next page; null on the last.'),
  }),
);

export type UsageReport = Static<typeof usageReport>;
export type UsageQuery = Readonly<Static<typeof usageFilters>>;

export const UsageEventsResult = component(
  'UsageEventsResult',
  Type.Object({
    accepted: count,
    duplicates: countOf('Events that an earlier event of this or another batch already reported.'),
  }),
);

export type UsageEventsCount = Static<typeof UsageEventsResult>;

/** Larger than the usage of any tenant, and exact in a number. */
const MAX_USED = 1_000_000_000_000_000;

export const usageCorrection = component(
  'UsageCorrection',
  Type.Object(
    {
      collections: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_USED, description: 'The number of items.' })),
      monthly_tokens_used: Type.Optional(
        Type.Integer({ minimum: 0, maximum: MAX_USED, description: 'Tokens spent in the current period.' }),
      ),
    },
    { ...closed, examples: [{ collections: 12 }] },
  ),
);

export type UsageCorrection = Readonly<Static<typeof usageCorrection>>;
