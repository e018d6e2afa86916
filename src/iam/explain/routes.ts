/** /v1/iam/explain */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { EXPLAIN_BODY_BYTES, sizeText } from '../../http/body-limits.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import { authorize } from '../caller/authorize.ts';
import { newPolicy } from '../policies/entity.ts';
import { newRole } from '../roles/entity.ts';
import { aPermission, aTenantId, notBoth } from '../schema/grammar.ts';
import { asksAlso, component, nullable } from '../schema/keywords.ts';
import { closed, page } from '../schema/schemas.ts';
import { explainRequest } from './explain.ts';
import type { ExplainParts } from './resolve.ts';
import { Explanation, Simulation, WhoCan } from './response-schemas.ts';
import { MAX_PROPOSAL_BYTES, simulateRequest } from './simulate.ts';
import { whoCan } from './who-can.ts';

const request = {
  subject: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'The id of a user or a key.' })),
  credential: Type.Optional(Type.String({ maxLength: 16_384, description: 'An API key or an access token.' })),
  tenant_id: Type.Optional(Type.String({ maxLength: 1024, description: 'The value of X-Tenant-ID.' })),
  method: Type.String({ minLength: 1, maxLength: 64 }),
  path: Type.String({ maxLength: 65_536 }),
  client_ip: Type.Optional(
    nullable(
      Type.String({ maxLength: 128, description: "Default: the caller's address. Null is an unknown address." }),
    ),
  ),
  time: Type.Optional(Type.String({ format: 'date-time', maxLength: 64, description: 'Default: now.' })),
  body: Type.Optional(Type.String({ maxLength: 131_072, description: 'The body of the request as text.' })),
  content_type: Type.Optional(Type.String({ maxLength: 1024, description: 'Default: application/json.' })),
};

const question = component('ExplainRequest', Type.Object(request, { ...closed, ...notBoth('subject', 'credential') }));

const TOGETHER = `Policies and roles take at most ${sizeText(MAX_PROPOSAL_BYTES)} together, as JSON without spaces.`;

const simulation = component(
  'SimulateRequest',
  Type.Object(
    {
      ...request,
      policies: Type.Optional(
        Type.Array(newPolicy, { maxItems: 100, description: `Each in full, as to create it. ${TOGETHER}` }),
      ),
      roles: Type.Optional(
        Type.Array(newRole, { maxItems: 100, description: `Each in full, as to create it. ${TOGETHER}` }),
      ),
    },
    { ...closed, ...notBoth('subject', 'credential') },
  ),
);

const ability = component(
  'WhoCanRequest',
  Type.Object(
    {
      permission: Type.String({
        maxLength: 128,
        ...aPermission,
        description: 'One permission, <resource>:<action>, without wildcards.',
      }),
      resource: Type.Optional(
        Type.String({
          maxLength: 600,
          ...asksAlso({ pattern: '^(models|collections|agents)/[^\\u0000-\\u001f\\u007f-\\u009f]*$' }),
          description:
            '<kind>/<name>; <kind>/ alone for one that the request does not name. Absent: a request without resources.',
        }),
      ),
      tenant_id: Type.Optional(Type.String({ maxLength: 63, ...aTenantId })),
    },
    { ...closed, examples: [{ permission: 'chat:write', resource: 'models/llama-3' }] },
  ),
);

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
      body: question,
      maxBodyBytes: EXPLAIN_BODY_BYTES,
      query: NOTHING,
      answers: shows('The decision and its reasons.', Explanation),
      refusals: ['not_found'],
      handler: async ({ caller, body }) => ({
        status: 200,
        body: await explainRequest(parts, { kind: 'caller', caller }, body),
      }),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain/simulate',
      operationId: 'simulate',
      summary: 'Explain the decision as if proposed policies and roles were in force. Nothing is saved or counted.',
      permission: 'admin:policies',
      onlyReads: true,
      body: simulation,
      maxBodyBytes: EXPLAIN_BODY_BYTES,
      query: NOTHING,
      answers: shows('The decision with the proposals, its reasons, and the current decision.', Simulation),
      refusals: ['not_found', 'escalation'],
      handler: async ({ caller, body }) => ({ status: 200, body: await simulateRequest(parts, caller, body) }),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain/who-can',
      operationId: 'whoCan',
      summary: 'List the users and keys of a tenant that have a permission, with the reasons.',
      permission: 'admin:policies',
      onlyReads: true,
      body: ability,
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
