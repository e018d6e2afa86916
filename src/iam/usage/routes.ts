/** Usage and limits: /v1/iam/usage, /v1/iam/usage/events, and the limits of a tenant. */

import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { exportableList } from '../../http/exports.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts } from '../caller/caller.ts';
import { TenantLimits } from '../schema/tenant-limits.ts';
import { PriceHistory, recordEvents } from './events.ts';
import { exportUsage } from './export.ts';
import { correctUsage, getLimits } from './limits.ts';
import type { MeteringParts } from './parts.ts';
import { readUsage } from './read.ts';
import { UsageEventsResult, usageCorrection, usageEvents, usageFilters, usageReport } from './schemas.ts';

const usage = exportableList(
  'The total and one page of its parts, or all parts in the format that the Accept header asks for.',
  usageReport,
  { csv: 'A header line, then one row on each line: those of the grouping, or the total.' },
);

export function usageEndpoints(parts: AdminParts & MeteringParts): readonly Endpoint[] {
  const history = new PriceHistory();
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/usage',
      operationId: 'getUsage',
      summary:
        'Show the usage of a month or of a span of days: the total, and the usage by model, key, user, day or tenant. As CSV if the Accept header asks for it.',
      permission: 'usage:read',
      query: usageFilters,
      answers: usage.answers,
      handler: ({ caller, again, query, header }) =>
        usage.answer(header('accept'), query, {
          page: () => readUsage(parts, caller, query),
          whole: () => exportUsage(parts, { caller, again }, query),
        }),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/usage/events',
      operationId: 'recordUsage',
      summary: 'Report usage from a platform that meters itself. Each event counts once.',
      permission: 'usage:write',
      body: usageEvents,
      answers: shows('The number of counted events and of duplicates.', UsageEventsResult),
      refusals: ['in_use'],
      run: async ({ callerIn, body }) => {
        const caller = await callerIn(body.tenant_id);
        authorize(caller, 'usage:write');
        return recordEvents(parts, caller, body.events, history);
      },
    }),
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/tenants/:id/limits',
      target: { type: 'tenant', param: 'id' },
      operationId: 'getLimits',
      summary:
        'Show the limits of a tenant and what is left of them. Platform administrators may ask about any tenant, other callers about their own.',
      permission: 'usage:read',
      answers: shows('Each limit with its usage, the rest and the time of its reset.', TenantLimits),
      refusals: ['not_found'],
      run: ({ caller, param }) => getLimits(parts, caller, param('id')),
    }),
    callerEndpoint({
      method: 'PUT',
      path: '/v1/iam/tenants/:id/usage',
      target: { type: 'tenant', param: 'id' },
      operationId: 'correctUsage',
      summary: 'Set the current usage of a tenant, after it changed without Postern.',
      permission: 'admin:tenants',
      body: usageCorrection,
      answers: shows('The resulting limits.', TenantLimits),
      refusals: ['not_found'],
      run: ({ caller, param, body }) => correctUsage(parts, caller, param('id'), body),
    }),
  ];
}
