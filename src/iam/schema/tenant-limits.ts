/** The schemas of a tenant's limits, and of what it does. */

import { type Static, Type } from 'typebox';
import { RATE_DIMENSIONS } from '../../decision/model-rates.ts';
import { component, countOf, nullable } from './keywords.ts';
import { texts } from './resource-parts.ts';
import { oneOf } from './schemas.ts';

const count = Type.Integer({ minimum: 0 });

const RESERVED = 'The part of `remaining` that is set aside for requests in progress and fetched ahead of need.';

const limit = {
  limit: nullable(countOf('Null: there is no limit.')),
  used: nullable(countOf('Null: the usage is not counted.')),
  reserved: nullable(countOf(`${RESERVED} Null: the usage is not counted.`)),
  remaining: nullable(count),
  resets_at: nullable(Type.String({ format: 'date-time', description: 'Null: it does not reset by itself.' })),
};

const TenantLimit = component('Limit', Type.Object(limit));

export type TenantLimit = Static<typeof TenantLimit>;

export const MonthlyLimit = component(
  'MonthlyLimit',
  Type.Object({
    ...limit,
    reserved: Type.Integer({ minimum: 0, description: RESERVED }),
    runs_out_at: nullable(
      Type.String({
        format: 'date-time',
        description:
          "The time at which the tokens are spent at the month's average pace. Null: not before the reset, spent already, or less than two days of the month have passed.",
      }),
    ),
  }),
);

export const TenantLimits = component(
  'Limits',
  Type.Object({
    rate_limit_rpm: TenantLimit,
    max_tokens_per_request: TenantLimit,
    monthly_tokens: MonthlyLimit,
    max_users: TenantLimit,
    max_collections: TenantLimit,
    rate_limits: Type.Array(
      component(
        'ModelRateLimit',
        Type.Object({
          models: texts,
          dimension: {
            ...oneOf(...RATE_DIMENSIONS),
            description: 'Whether `limit` is of requests or tokens per minute, or of requests at the same time.',
          },
          ...limit,
        }),
      ),
      {
        description: 'The limits by model of the tenant itself. `used` of `parallel`: the places that all gates hold.',
      },
    ),
  }),
);

export type TenantLimits = Static<typeof TenantLimits>;

export const TenantActivity = component(
  'TenantActivity',
  Type.Object({
    requests: countOf("The metered requests of the current month in the tenant's time zone."),
    denied: countOf('The denied requests of the last 24 hours.'),
  }),
);

export type TenantActivity = Static<typeof TenantActivity>;
