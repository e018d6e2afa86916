/** /v1/iam/policies */

import { Type } from 'typebox';
import type { Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { noticedPolicy, refuseUnneeded } from '../permissions/notices.ts';
import { closed, countedPage, forcedStrictly, tenantFilter, withNotices } from '../schema/schemas.ts';
import { newPolicy, Policy, policyChanges, policyFilter } from './entity.ts';
import { getPolicy, listPoliciesPage } from './read.ts';
import { createPolicy, deletePolicy, updatePolicy } from './write.ts';

const listing = Type.Object({ ...countedPage, ...tenantFilter, ...policyFilter.properties, ...withNotices }, closed);

const policies = resourceEndpoints({
  path: '/v1/iam/policies',
  param: 'name',
  type: 'policy',
  nouns: ['policy', 'policies'],
  schema: Policy,
  permission: 'admin:policies',
});

export function policyEndpoints(parts: AdminParts & CatalogParts): readonly Endpoint[] {
  return [
    policies.list({
      operationId: 'listPolicies',
      summary: 'List policies, including the global policies.',
      query: listing,
      run: ({ caller, query }) => listPoliciesPage(parts, caller, query),
    }),
    policies.create({
      operationId: 'createPolicy',
      summary: 'Create a policy.',
      body: newPolicy,
      query: forcedStrictly,
      refusals: ['escalation', 'already_exists', 'would_lock_out', 'quota_exceeded'],
      run: async ({ caller, body, query }) => {
        if (query.strict === true) refuseUnneeded(parts, body.actions, '/actions');
        return noticedPolicy(parts, await createPolicy(parts, caller, body, query.force === true));
      },
    }),
    policies.get({
      operationId: 'getPolicy',
      summary: 'Get a policy.',
      run: ({ caller }, name) => getPolicy(parts, caller, name),
    }),
    policies.update({
      operationId: 'updatePolicy',
      summary: 'Update a policy: the members that are present.',
      body: policyChanges,
      query: forcedStrictly,
      refusals: ['escalation', 'would_lock_out', 'quota_exceeded'],
      run: async ({ caller, body, query }, name) => {
        const check = () => query.strict === true && refuseUnneeded(parts, body.actions, '/actions');
        return noticedPolicy(parts, await updatePolicy(parts, caller, name, body, query.force === true, check));
      },
    }),
    policies.delete({
      operationId: 'deletePolicy',
      summary: 'Delete a policy.',
      refusals: ['escalation'],
      run: ({ caller }, name) => deletePolicy(parts, caller, name),
    }),
  ];
}
