/** What was decided lately: /v1/iam/decisions. */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import type { AdminParts } from '../caller/caller.ts';
import { component, nullable } from '../schema/keywords.ts';
import { closed, oneOf, page, tenantFilter } from '../schema/schemas.ts';
import { INTERVALS, type Interval, KEPT_DAYS } from './count-queries.ts';
import { readDecisions } from './read.ts';

const instant = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', maxLength: 64, description }));

const filters = Type.Object(
  {
    ...page,
    ...tenantFilter,
    from: instant('The first minute. Default: one hour before `to`.'),
    to: instant('The end of the time span. A minute that begins at this time is excluded. Default: now.'),
    interval: Type.Optional(
      Type.Unsafe<Interval>({
        type: 'string',
        enum: [...INTERVALS],
        description: 'Groups rows by UTC time; default: minute.',
      }),
    ),
    group_by: Type.Optional(
      Type.Unsafe<'code' | 'outcome'>({
        type: 'string',
        enum: ['code', 'outcome'],
        description: 'Default: by code and route.',
      }),
    ),
  },
  closed,
);

const count = Type.Integer({ minimum: 0 });

const Decisions = component(
  'Decisions',
  Type.Object({
    from: Type.String({ format: 'date-time' }),
    to: Type.String({ format: 'date-time' }),
    tenant_id: Type.String({
      description: '`*` for all tenants together, and for requests without a known principal.',
    }),
    interval: oneOf(...INTERVALS),
    total: component(
      'DecisionTotals',
      Type.Object({
        allow: count,
        deny: count,
        fault: Type.Integer({
          minimum: 0,
          description: 'Requests that the server answered with 503 because it could not decide them.',
        }),
      }),
    ),
    data: Type.Array(
      component(
        'DecisionsOfMinute',
        Type.Object({
          minute: Type.String({
            format: 'date-time',
            description: 'The start of the minute, hour or day.',
            examples: ['2026-11-21T09:00:00.000Z'],
          }),
          outcome: oneOf('allow', 'deny', 'fault'),
          code: nullable(
            Type.String({
              description: '`allow`, `public`, or the code of the error; null in groups by outcome.',
              examples: ['denied_by_policy'],
            }),
          ),
          route: nullable(
            Type.String({
              description:
                'An entry of the route table. Null if no route matched or was needed, and in groups by code or outcome.',
              examples: ['POST /v1/chat/completions'],
            }),
          ),
          count,
        }),
      ),
      {
        description: 'One row for each minute, hour or day and each code and route, code, or outcome. Oldest first.',
      },
    ),
    has_more: Type.Boolean(),
    next_cursor: nullable(Type.String({ description: 'The `cursor` of the next page; null on the last.' })),
  }),
);

export function decisionEndpoints(parts: AdminParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/decisions',
      operationId: 'getDecisions',
      summary: `Show how many requests were allowed and denied, by time, code and route, for the last ${KEPT_DAYS} days.`,
      permission: 'usage:read',
      body: NOTHING,
      query: filters,
      answers: shows('The totals and one page of their parts.', Decisions),
      refusals: [],
      handler: async ({ caller, query }) => ({ status: 200, body: await readDecisions(parts, caller, query) }),
    }),
  ];
}
