/** Decisions: counted by the minute under /v1/iam/decisions, and recorded under /v1/iam/decisions/recent. */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import type { AdminParts } from '../caller/caller.ts';
import { readRecent } from '../explain/recorded.ts';
import type { ExplainParts } from '../explain/resolve.ts';
import { closed, tenantFilter } from '../schema/schemas.ts';
import { KEPT_DAYS } from './count-queries.ts';
import { readDecisions } from './read.ts';
import { listRecentPage, reportTrial } from './recent.ts';
import { RECENT_BOUNDS, RECENT_HOURS } from './recent-queries.ts';
import {
  countFilters,
  Decisions,
  explainedDecision,
  recentDecisions,
  recentFilters,
  Trial,
  trialFilters,
} from './schemas.ts';

export function decisionEndpoints(parts: AdminParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/decisions',
      operationId: 'getDecisions',
      summary: `Show how many requests were allowed and denied, by time, code and route, for the last ${KEPT_DAYS} days.`,
      permission: 'usage:read',
      query: countFilters,
      answers: shows('The totals and one page of their parts.', Decisions),
      run: ({ caller, query }) => readDecisions(parts, caller, query),
    }),
  ];
}

const RECENT = '/v1/iam/decisions/recent';
const { sampled, first_allows: firsts, reported, shadow } = RECENT_BOUNDS;
const BOUNDS = `At most ${sampled.perGroup.toLocaleString('en-US')} denials, as many sampled allows, and ${firsts.perGroup.toLocaleString('en-US')} first allows of a tenant are kept, and apart from these ${reported.perGroup.toLocaleString('en-US')} denials and as many allows that a report-only policy would have changed, and ${shadow.perGroup.toLocaleString('en-US')} denials and as many allows in shadow mode.`;

export function recentDecisionEndpoints(parts: ExplainParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/decisions/trial',
      operationId: 'getTrial',
      summary:
        'Show which requests the server would have denied in shadow mode, by reason and principal, and how often another gate decided otherwise.',
      permission: 'audit:read',
      query: trialFilters,
      answers: shows('The numbers of the time span.', Trial),
      run: ({ caller, query }) => reportTrial(parts, caller, query),
    }),
    callerEndpoint({
      method: 'GET',
      path: RECENT,
      operationId: 'listRecentDecisions',
      summary: `List denials, the first allow of each principal, route and model of a day, and a sample of the other allows, of the last ${RECENT_HOURS} hours, newest first. ${BOUNDS}`,
      permission: 'audit:read',
      query: recentFilters,
      answers: shows('One page of decisions.', recentDecisions),
      run: ({ caller, query }) => listRecentPage(parts, caller, query),
    }),
    callerEndpoint({
      method: 'GET',
      path: `${RECENT}/:request_id`,
      operationId: 'getRecentDecision',
      summary: 'Get the recorded decision of a request, with its explanation.',
      permission: 'audit:read',
      query: Type.Object({ ...tenantFilter }, closed),
      answers: shows('The decision, and its explanation by the current rules.', explainedDecision),
      refusals: ['not_found'],
      run: ({ caller, param }) => readRecent(parts, caller, param('request_id')),
    }),
  ];
}
