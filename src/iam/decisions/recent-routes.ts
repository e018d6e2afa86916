/** Recorded decisions: /v1/iam/decisions/recent. */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import { readRecent } from '../explain/recorded.ts';
import type { ExplainParts } from '../explain/resolve.ts';
import { Explanation } from '../explain/response-schemas.ts';
import { component, nullable } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage, oneOf, tenantFilter } from '../schema/schemas.ts';
import { listRecentPage } from './recent.ts';
import { RECENT_BOUNDS, RECENT_HOURS } from './recent-queries.ts';

const RECENT = '/v1/iam/decisions/recent';

const instant = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', maxLength: 64, description }));
const filterText = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength, description }));

const filters = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    outcome: Type.Optional(oneOf('allow', 'deny')),
    code: filterText(64, '`allow`, or the code of the denial.'),
    principal: filterText(64, 'The id of a user or a key.'),
    route: filterText(1100, 'A line of the route table: POST /v1/chat/completions.'),
    from: instant('The start of the time span, included.'),
    to: instant('The end of the time span, excluded.'),
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
  principal: nullable(Type.Object({ type: oneOf('user', 'api_key'), id: text })),
  method: nullable(Type.String({ description: 'Null if the server could not read the check.' })),
  path: nullable(
    Type.String({ description: 'The path without the query, at most 1,024 characters. Secrets are masked.' }),
  ),
  route: nullable(
    Type.String({ description: 'An entry of the route table.', examples: ['POST /v1/chat/completions'] }),
  ),
  permission: perhapsText,
  resources: Type.Array(text, { description: '`<kind>/<name>`, at most 16.' }),
  client_ip: perhapsText,
  policy: nullable(Type.String({ description: 'The policy that denied.' })),
  sampled: Type.Boolean({
    description: '`true`: the server did not record other decisions of the tenant with this outcome at that time.',
  }),
};

const RecentDecision = component('RecentDecision', Type.Object(decision));

const RecentDecisions = component(
  'RecentDecisions',
  Type.Object({
    ...listOf(RecentDecision).properties,
    sampled: Type.Boolean({ description: '`true`: at least one decision on this page is a sample.' }),
  }),
);

const ExplainedDecision = component(
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

const BOUNDS = `At most ${RECENT_BOUNDS.perGroup.toLocaleString('en-US')} denials and as many allows of a tenant are kept.`;

export function recentDecisionEndpoints(parts: ExplainParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: RECENT,
      operationId: 'listRecentDecisions',
      summary: `List denials and a sample of allows of the last ${RECENT_HOURS} hours, newest first. ${BOUNDS}`,
      permission: 'audit:read',
      body: NOTHING,
      query: filters,
      answers: shows('One page of decisions.', RecentDecisions),
      refusals: [],
      handler: async ({ caller, query }) => ({ status: 200, body: await listRecentPage(parts, caller, query) }),
    }),
    callerEndpoint({
      method: 'GET',
      path: `${RECENT}/:request_id`,
      operationId: 'getRecentDecision',
      summary: 'Get the recorded decision of a request, with its explanation.',
      permission: 'audit:read',
      body: NOTHING,
      query: Type.Object({ ...tenantFilter }, closed),
      answers: shows('The decision, and its explanation by the current rules.', ExplainedDecision),
      refusals: ['not_found'],
      handler: async ({ caller, param }) => ({
        status: 200,
        body: await readRecent(parts, caller, param('request_id')),
      }),
    }),
  ];
}
