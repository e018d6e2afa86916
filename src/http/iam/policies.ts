/** /v1/iam/policies */

import { Type } from 'typebox';
import type { AdminParts } from '../../admin/caller.ts';
import { createPolicy } from '../../admin/policies/create.ts';
import { getPolicy, listPoliciesPage } from '../../admin/policies/read.ts';
import { deletePolicy, updatePolicy } from '../../admin/policies/update.ts';
import { callerRoute, NOTHING, type Route } from '../route.ts';
import { closed, description, forced, oneOf, page, roleNames, somePatterns, tenantFilter } from './schemas.ts';

/** What may be in it, the use case tells, with its reasons. */
const conditions = Type.Unsafe<unknown>({
  type: ['object', 'null'],
  description: 'ip_address, time, day_of_week and timezone; all must hold. Absent or empty = always.',
});

const effect = oneOf('allow', 'deny');
const appliesTo = oneOf('everyone', 'roles');

const optional = {
  description: Type.Optional(description),
  conditions: Type.Optional(conditions),
  applies_to: Type.Optional(appliesTo),
  attached_roles: Type.Optional(roleNames),
  global: Type.Optional(Type.Boolean()),
  enabled: Type.Optional(Type.Boolean()),
};

const newPolicy = Type.Object(
  { name: Type.String({ maxLength: 64 }), effect, actions: somePatterns, resources: somePatterns, ...optional },
  closed,
);

const changes = Type.Object(
  { effect: Type.Optional(effect), actions: Type.Optional(somePatterns), resources: Type.Optional(somePatterns), ...optional },
  closed,
);

const listing = Type.Object({ ...page, ...tenantFilter }, closed);

const POLICIES = '/v1/iam/policies';
const POLICY = '/v1/iam/policies/:name';

export function policyRoutes(parts: AdminParts): readonly Route[] {
  return [
    callerRoute({
      method: 'GET',
      path: POLICIES,
      summary: 'List policies, global ones among them.',
      permission: 'admin:policies',
      body: NOTHING,
      query: listing,
      handler: async ({ caller, query }) => ({ status: 200, body: await listPoliciesPage(parts, caller, query) }),
    }),
    callerRoute({
      method: 'POST',
      path: POLICIES,
      summary: 'Make a policy.',
      permission: 'admin:policies',
      body: newPolicy,
      query: forced,
      handler: async ({ caller, body, query }) => {
        const policy = await createPolicy(parts, caller, body, query.force === true);
        return { status: 201, body: policy, headers: { location: `${POLICIES}/${policy.name}` } };
      },
    }),
    callerRoute({
      method: 'GET',
      path: POLICY,
      summary: 'Get a policy.',
      permission: 'admin:policies',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => ({ status: 200, body: await getPolicy(parts, caller, param('name')) }),
    }),
    callerRoute({
      method: 'PUT',
      path: POLICY,
      summary: 'Change a policy: the members that are present.',
      permission: 'admin:policies',
      body: changes,
      query: forced,
      handler: async ({ caller, param, body, query }) => ({
        status: 200,
        body: await updatePolicy(parts, caller, param('name'), body, query.force === true),
      }),
    }),
    callerRoute({
      method: 'DELETE',
      path: POLICY,
      summary: 'Delete a policy.',
      permission: 'admin:policies',
      body: NOTHING,
      query: NOTHING,
      handler: async ({ caller, param }) => {
        await deletePolicy(parts, caller, param('name'));
        return { status: 204 };
      },
    }),
  ];
}
