/** /v1/iam/explain */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { EXPLAIN_BODY_BYTES } from '../../http/body-limits.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import { authorize } from '../caller/authorize.ts';
import { closed, page } from '../schema/schemas.ts';
import { explain } from './explain.ts';
import type { ExplainParts } from './resolve.ts';
import { Explanation, explainRequest, Simulation, simulateRequest, WhoCan, whoCanRequest } from './schemas.ts';
import { simulate } from './simulate.ts';
import { whoCan } from './who-can.ts';

const paging = Type.Object({ ...page }, closed);

export function explainEndpoints(parts: ExplainParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain',
      operationId: 'explain',
      summary: 'Explain the decision about a request. Nothing is counted.',
      permission: 'use-case',
      onlyReads: true,
      needs: '`admin:policies`, or asking about oneself',
      body: explainRequest,
      maxBodyBytes: EXPLAIN_BODY_BYTES,
      query: NOTHING,
      answers: shows('The decision and its reasons.', Explanation),
      refusals: ['not_found'],
      handler: async ({ caller, body }) => ({
        status: 200,
        body: await explain(parts, { kind: 'caller', caller }, body),
      }),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain/simulate',
      operationId: 'simulate',
      summary: 'Explain the decision as if proposed policies and roles were in force. Nothing is saved or counted.',
      permission: 'admin:policies',
      onlyReads: true,
      body: simulateRequest,
      maxBodyBytes: EXPLAIN_BODY_BYTES,
      query: NOTHING,
      answers: shows('The decision with the proposals, its reasons, and the current decision.', Simulation),
      refusals: ['not_found', 'escalation'],
      handler: async ({ caller, body }) => ({ status: 200, body: await simulate(parts, caller, body) }),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain/who-can',
      operationId: 'whoCan',
      summary: 'List the users and keys of a tenant that have a permission, with the reasons.',
      permission: 'admin:policies',
      onlyReads: true,
      body: whoCanRequest,
      query: paging,
      answers: shows('One page of users and keys. It may be empty although there are more.', WhoCan),
      refusals: [],
      handler: async ({ body, query, callerIn }) => {
        const { tenant_id: tenantId, ...asked } = body;
        const caller = await callerIn(tenantId);
        authorize(caller, 'admin:policies');
        return { status: 200, body: await whoCan(parts, caller, asked, query) };
      },
    }),
  ];
}
