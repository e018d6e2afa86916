/** The schemas of decisions, counted and recorded, in requests and responses, and their types. */

import { type Static, Type } from 'typebox';
import { Explanation } from '../explain/schemas.ts';
import {
  component,
  countOf,
  described,
  filterText,
  flagOf,
  nullable,
  shownText,
  shownTextOrNull,
} from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage, names, oneOf, page, tenantFilter, timeParameter } from '../schema/schemas.ts';

/** The UTC intervals by which rows are grouped. */
const INTERVALS = ['minute', 'hour', 'day'] as const;
export type GroupInterval = (typeof INTERVALS)[number];

const shadow = Type.Optional(
  flagOf(
    '`true`: decisions in shadow mode, which changed nothing. `false`: decisions that the gate enforced. Default: false.',
  ),
);

export const countFilters = Type.Object(
  {
    ...page,
    ...tenantFilter,
    shadow,
    from: timeParameter('The first minute. Default: one hour before `to`.'),
    to: timeParameter('The end of the time span. A minute that begins at this time is excluded. Default: now.'),
    interval: Type.Optional(described(oneOf(...INTERVALS), 'Groups rows by UTC time; default: minute.')),
    group_by: Type.Optional(described(oneOf('code', 'outcome'), 'Default: by code and route.')),
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

const reportedSpan = {
  from: Type.String({ format: 'date-time' }),
  to: Type.String({ format: 'date-time' }),
  tenant_id: shownText('`*` for all tenants together, and for requests without a known principal.'),
};

const DecisionTotals = component(
  'DecisionTotals',
  Type.Object({
    allow: count,
    deny: count,
    fault: countOf('Requests that the server answered with 503 because it could not decide them.'),
  }),
);

export const Decisions = component(
  'Decisions',
  Type.Object({
    ...reportedSpan,
    interval: oneOf(...INTERVALS),
    total: DecisionTotals,
    data: Type.Array(DecisionsOfMinute, {
      description: 'One row for each minute, hour or day and each code and route, code, or outcome. Oldest first.',
    }),
    has_more: Type.Boolean(),
    next_cursor: shownTextOrNull('The `cursor` of the next page; null on the last.'),
  }),
);

export type CountQuery = Readonly<Static<typeof countFilters>>;
export type DecisionsReport = Static<typeof Decisions>;

export const recentFilters = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    shadow,
    other: Type.Optional(described(oneOf('allow', 'deny'), 'With `shadow=true`: the outcome of the other gate.')),
    differs: Type.Optional(
      flagOf('With `shadow=true`. `true`: decisions whose outcome is not that of the other gate. `false`: the others.'),
    ),
    outcome: Type.Optional(oneOf('allow', 'deny')),
    code: filterText(64, '`allow`, or the code of the denial.'),
    principal: filterText(64, 'The id of a user or a key.'),
    route: filterText(1100, 'A line of the route table: POST /v1/chat/completions.'),
    would: Type.Optional(
      described(
        oneOf('deny', 'allow', 'any'),
        'Decisions that a report-only policy would have changed: to a denial, to an allow, or to either.',
      ),
    ),
    report: filterText(64, 'The name of the report-only policy that would have changed the decision.'),
    from: timeParameter('The start of the time span, included.'),
    to: timeParameter('The end of the time span, excluded.'),
    include: names,
  },
  closed,
);

/** The principals of one summary of a trial. */
export const MAX_TRIAL_PRINCIPALS = 50;

const text = Type.String();
const perhapsText = nullable(Type.String());

const principal = Type.Object({
  type: oneOf('user', 'api_key'),
  id: text,
  name: Type.Optional(
    shownTextOrNull('With `include=names`: its current name. Null: there is none, or the caller may not read it.'),
  ),
});

const decision = {
  request_id: Type.String({
    description: 'The request_id of the denial, and its header x-request-id.',
    examples: ['req_…'],
  }),
  time: Type.String({ format: 'date-time' }),
  tenant_id: shownTextOrNull('Null if no tenant was known.'),
  outcome: oneOf('allow', 'deny'),
  code: Type.String({ description: '`allow`, or the code of the denial.', examples: ['denied_by_policy'] }),
  detail: shownText('The detail of the denial; empty for an allow.'),
  principal: nullable(principal),
  method: shownTextOrNull('Null if the server could not read the check.'),
  path: shownTextOrNull('The path without the query, at most 1,024 characters. Secrets are masked.'),
  route: nullable(
    Type.String({ description: 'An entry of the route table.', examples: ['POST /v1/chat/completions'] }),
  ),
  permission: perhapsText,
  resources: Type.Unsafe<readonly string[]>(Type.Array(text, { description: '`<kind>/<name>`, at most 16.' })),
  client_ip: perhapsText,
  policy: shownTextOrNull('The policy that denied.'),
  would_deny: shownTextOrNull(
    'The report-only policy that would have denied the request. Null: none, or it is denied.',
  ),
  would_allow: shownTextOrNull(
    'The report-only policy that would have allowed the request. Null: none, or it is allowed.',
  ),
  budget: shownTextOrNull('The id of the budget without room for the request.'),
  sampled: flagOf('`true`: the server did not record other decisions of the tenant with this outcome at that time.'),
  shadow: flagOf('`true`: the check was in shadow mode, and its decision changed nothing.'),
  client_request_id: shownTextOrNull('The `x-request-id` of a request in shadow mode, by which Envoy names it.'),
  other: Type.Unsafe<'allow' | 'deny' | null>({
    type: ['string', 'null'],
    enum: ['allow', 'deny', null],
    description:
      "The other gate's outcome for a request in shadow mode. `deny`: Envoy's access log reports its denial. `allow`: no such report has come. Null: the outcome is not known, because the request has no usable `x-request-id`, or another recorded request has the same one.",
  }),
};

export const RecentDecision = component('RecentDecision', Type.Object(decision));

export type RecentResource = Readonly<Static<typeof RecentDecision>>;
export type RecentQuery = Readonly<Static<typeof recentFilters>>;

export const recentDecisions = component(
  'RecentDecisions',
  Type.Object({
    ...listOf(RecentDecision).properties,
    sampled: flagOf('`true`: at least one decision on this page is a sample.'),
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
          body: Type.Optional(shownText('A body that names the same resources. The original body is not recorded.')),
          content_type: Type.Optional(text),
        },
        { description: 'The request as explain and simulate take it; null if the record is not exact.' },
      ),
    ),
    explanation: nullable(
      Type.Object({
        ...Explanation.properties,
        same: flagOf('Whether the current rules lead to the recorded decision.'),
        note: shownText('How the explanation relates to the recorded decision.'),
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

export const trialFilters = Type.Object(
  {
    ...tenantFilter,
    from: timeParameter('The first minute. Default: 24 hours before `to`.'),
    to: timeParameter('The end of the time span, excluded. Default: now.'),
  },
  closed,
);

const differing = countOf('Those that the other gate is known to have decided otherwise.');

export const Trial = component(
  'Trial',
  Type.Object({
    ...reportedSpan,
    total: DecisionTotals,
    recorded: Type.Object(
      { allow: count, deny: count },
      { description: 'The decisions that are recorded. All following numbers count these.' },
    ),
    not_recorded: countOf(
      'Allows and denials of `total` beyond the bounds of the record. Above 0, the record is a sample.',
    ),
    differences: Type.Object(
      {
        denied_here: countOf('Requests that this server would have denied and the other gate allowed.'),
        denied_there: countOf('Requests that this server would have allowed and the other gate denied.'),
      },
      { description: 'How often the two gates decided a request differently.' },
    ),
    other_gate_reported_at: nullable(
      Type.String({
        format: 'date-time',
        description:
          "The time of the last report of the access log that names the other gate's denials, to the minute. Null: none has ever come, so the other gate's outcome is not known.",
      }),
    ),
    denied_by_code: Type.Array(
      Type.Object({
        code: Type.String({ examples: ['insufficient_permission'] }),
        policy: shownTextOrNull('The policy that would have denied.'),
        count,
        differing,
      }),
      { description: 'The requests that this server would have denied, by reason. The largest number first.' },
    ),
    denied_by_principal: Type.Array(Type.Object({ principal: nullable(principal), count, differing }), {
      maxItems: MAX_TRIAL_PRINCIPALS,
      description: `The same by principal, at most ${MAX_TRIAL_PRINCIPALS}. Null: no principal was known.`,
    }),
  }),
);

export type TrialQuery = Readonly<Static<typeof trialFilters>>;
export type TrialReport = Static<typeof Trial>;
