/** /v1/iam/explain */

import { Type } from 'typebox';
import { Refusal } from '../../domain/errors.ts';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { exportableList } from '../../http/exports.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts } from '../caller/caller.ts';
import { closed, page } from '../schema/schemas.ts';
import { differenceOfChange, differenceRunner } from './difference.ts';
import { differenceQuery, RulesDifference } from './difference-schemas.ts';
import { explain, simulate } from './explain.ts';
import type { ExplainParts } from './resolve.ts';
import {
  differenceRequest,
  Explanation,
  explainRequest,
  Simulation,
  simulateRequest,
  WhoCan,
  whoCanQuery,
  whoCanRequest,
} from './schemas.ts';
import { abilitiesInBody, abilitiesInQuery, whoCan } from './who-can.ts';
import { exportWhoCan } from './who-can-export.ts';

const paging = Type.Object({ ...page }, closed);

const whoCanList = exportableList(
  'One page of roles, users and keys, which may be empty although there are more, or the stream that the Accept header asks for.',
  WhoCan,
  {
    ndjson: 'One role, user or key as JSON on each line.',
    csv: 'A header line, then one role, user or key on each line.',
  },
);

export function explainEndpoints(parts: ExplainParts & Pick<AdminParts, 'feed' | 'now'>): readonly Endpoint[] {
  const differences = differenceRunner();
  return [
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain',
      operationId: 'explain',
      summary: 'Explain the decision about a request. Nothing is counted.',
      permission: 'use-case',
      unlessSelf: 'admin:policies',
      onlyReads: true,
      needs: '`admin:policies`, or a question about the caller itself',
      body: explainRequest,
      answers: shows('The decision and its reasons.', Explanation),
      refusals: ['not_found'],
      run: ({ caller, body }) => explain(parts, { kind: 'caller', caller }, body),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain/simulate',
      operationId: 'simulate',
      summary: 'Explain the decision as if proposed policies and roles were in force. Nothing is saved or counted.',
      permission: 'admin:policies',
      onlyReads: true,
      body: simulateRequest,
      answers: shows('The decision with the proposals, its reasons, and the current decision.', Simulation),
      refusals: ['not_found', 'escalation'],
      run: ({ caller, body }) => simulate(parts, caller, body),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/explain/difference',
      operationId: 'difference',
      summary:
        'Show which requests of a tenant proposed policies and roles would newly allow or deny, exactly. Nothing is saved.',
      permission: 'admin:policies',
      onlyReads: true,
      query: differenceQuery,
      body: differenceRequest,
      answers: shows('The difference: the boxes of requests whose outcome changes.', RulesDifference),
      refusals: ['escalation', 'unavailable'],
      run: ({ caller, body, query }) => differenceOfChange(parts, differences, caller, body, query.shadow === true),
    }),
    ...whoCanEndpoints(parts),
  ];
}

/** The same list by GET and, for the users and keys with one permission, by POST. */
function whoCanEndpoints(parts: ExplainParts & Pick<AdminParts, 'feed' | 'now'>): readonly Endpoint[] {
  return [
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
      run: async ({ body, query, callerIn }) => {
        const { tenant_id: tenantId, ...asked } = body;
        const caller = await callerIn(tenantId);
        authorize(caller, 'admin:policies');
        return whoCan(parts, caller, asked, abilitiesInBody(parts, asked), 'principals', query);
      },
    }),
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/explain/who-can',
      operationId: 'listWhoCan',
      summary:
        'List the roles, users and keys of a tenant with access to a permission, a resource or both, with the reasons: in pages, or as one stream of NDJSON or CSV if the Accept header asks for it.',
      permission: 'admin:policies',
      query: whoCanQuery,
      answers: whoCanList.answers,
      handler: ({ caller, again, query, header }) => {
        if (caller.everyTenant) throw new Refusal('invalid_tenant', 'Name one tenant.', { param: 'tenant_id' });
        const { tenant_id: _tenant, ...asked } = query;
        return whoCanList.answer(header('accept'), asked, {
          page: async () => {
            const { limit: _limit, cursor: _cursor, ...request } = asked;
            const abilities = abilitiesInQuery(parts, request);
            return whoCan(parts, caller, request, abilities, 'roles_and_principals', asked);
          },
          whole: async (format) => ({
            name: 'who-can',
            pieces: await exportWhoCan(parts, { caller, again }, asked, format),
          }),
        });
      },
    }),
  ];
}
