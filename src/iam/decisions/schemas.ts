/** The schemas of decisions, counted and recorded, in requests and responses, and their types. */

import { type Static, Type } from 'typebox';
import { Refusal } from '../../domain/errors.ts';
import { Explanation } from '../explain/schemas.ts';
import { component, nullable } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage, names, oneOf, page, tenantFilter } from '../schema/schemas.ts';

/** The UTC intervals by which rows are grouped. */
const INTERVALS = ['minute', 'hour', 'day'] as const;
export type GroupInterval = (typeof INTERVALS)[number];

const instant = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', maxLength: 64, description }));

/**
 * Reads an instant of a query, in milliseconds since the epoch.
 * @throws Refusal `invalid_parameter` for an instant that does not exist
 */
export function instantIn(param: 'from' | 'to', text: string): number {
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  throw new Refusal('invalid_parameter', `${param} must be an RFC 3339 time, such as 2026-11-30T12:00:00Z.`, { param });
}

export const countFilters = Type.Object(
  {
    ...page,
    ...tenantFilter,
    from: instant('The first minute. Default: one hour before `to`.'),
    to: instant('The end of the time span. A minute that begins at this time is excluded. Default: now.'),
    interval: Type.Optional(
      Type.Unsafe<GroupInterval>({
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

const DecisionsOfMinute = component(
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
);

export type DecisionsOfMinute = Static<typeof DecisionsOfMinute>;

export const Decisions = component(
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
    data: Type.Array(DecisionsOfMinute, {
      description: 'One row for each minute, hour or day and each code and route, code, or outcome. Oldest first.',
    }),
    has_more: Type.Boolean(),
    next_cursor: nullable(Type.String({ description: 'The `cursor` of the next page; null on the last.' })),
  }),
);

export type CountQuery = Readonly<Static<typeof countFilters>>;
export type DecisionsReport = Static<typeof Decisions>;

const filterText = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

export const recentFilters = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    outcome: Type.Optional(oneOf('allow', 'deny')),
    code: filterText(64, '`allow`, or the code of the denial.'),
    principal: filterText(64, 'The id of a user or a key.'),
    route: filterText(1100, 'A line of the route table: POST /v1/chat/completions.'),
    from: instant('The start of the time span, included.'),
    to: instant('The end of the time span, excluded.'),
    include: names,
  },
  closed,
);

const text = Type.String();
const perhapsText = nullable(Type.String());

const decision = {
  request_id: Type.String({
    description: 'The request_id of the denial, and its header x-request-id.',
    examples: ['req_…'],
  }),
  time: Type.String({ format: 'date-time' }),
  tenant_id: nullable(Type.String({ description: 'Null if no tenant was known.' })),
  outcome: oneOf('allow', 'deny'),
  code: Type.String({ description: '`allow`, or the code of the denial.', examples: ['denied_by_policy'] }),
  detail: Type.String({ description: 'The detail of the denial; empty for an allow.' }),
  principal: nullable(
    Type.Object({
      type: oneOf('user', 'api_key'),
      id: text,
      name: Type.Optional(
        nullable(
          Type.String({
            description: 'With `include=names`: its current name. Null: there is none, or the caller may not read it.',
          }),
        ),
      ),
    }),
  ),
  method: nullable(Type.String({ description: 'Null if the server could not read the check.' })),
  path: nullable(
    Type.String({ description: 'The path without the query, at most 1,024 characters. Secrets are masked.' }),
  ),
  route: nullable(
    Type.String({ description: 'An entry of the route table.', examples: ['POST /v1/chat/completions'] }),
  ),
  permission: perhapsText,
  resources: Type.Unsafe<readonly string[]>(Type.Array(text, { description: '`<kind>/<name>`, at most 16.' })),
  client_ip: perhapsText,
  policy: nullable(Type.String({ description: 'The policy that denied.' })),
  budget: nullable(Type.String({ description: 'The id of the budget without room for the request.' })),
  sampled: Type.Boolean({
    description: '`true`: the server did not record other decisions of the tenant with this outcome at that time.',
  }),
};

export const RecentDecision = component('RecentDecision', Type.Object(decision));

export type RecentResource = Readonly<Static<typeof RecentDecision>>;
export type RecentQuery = Readonly<Static<typeof recentFilters>>;

export const recentDecisions = component(
  'RecentDecisions',
  Type.Object({
    ...listOf(RecentDecision).properties,
    sampled: Type.Boolean({ description: '`true`: at least one decision on this page is a sample.' }),
  }),
);

export const explainedDecision = component(
  'ExplainedDecision',
  Type.Object({
    ...decision,
    request: nullable(
      Type.Object(
        {
          subject: Type.Optional(text),
          tenant_id: Type.Optional(text),
          method: text,
          path: text,
          client_ip: perhapsText,
          time: Type.String({ format: 'date-time' }),
          body: Type.Optional(
            Type.String({ description: 'A body that names the same resources. The original body is not recorded.' }),
          ),
          content_type: Type.Optional(text),
        },
        { description: 'The request as explain and simulate take it; null if the record is not exact.' },
      ),
    ),
    explanation: nullable(
      Type.Object({
        ...Explanation.properties,
        same: Type.Boolean({ description: 'Whether the current rules lead to the recorded decision.' }),
        note: Type.String({ description: 'How the explanation relates to the recorded decision.' }),
      }),
    ),
    not_explained: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      enum: ['unreadable', 'altered', 'unknown_principal', null],
      description:
        'Why there is no explanation: the check could not be read, a text was cut or masked, or the principal is gone or not visible.',
    }),
  }),
);
