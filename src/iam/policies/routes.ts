/** /v1/iam/policies */

import { Type } from 'typebox';
import { DONE, makes, shows, TAGGED } from '../../http/answers.ts';
import { MAX_BODY_BYTES } from '../../http/body-limits.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { noticedPolicy, refuseUnneeded } from '../permissions/notices.ts';
import { aName, someConditions } from '../schema/grammar.ts';
import { asksAlso, component } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { Policy } from '../schema/resources.ts';
import {
  closed,
  countedPage,
  description,
  forcedStrictly,
  oneOf,
  roleNames,
  somePatterns,
  someResourcePatterns,
  tenantFilter,
  withoutTenant,
} from '../schema/schemas.ts';
import { createPolicy } from './create.ts';
import { getPolicy, listPoliciesPage } from './read.ts';
import { deletePolicy, updatePolicy } from './update.ts';

/** What may be in it, the use case tells, with its reasons. */
const conditions = Type.Unsafe<unknown>({
  type: ['object', 'null'],
  ...someConditions,
  description:
    '`ip_address`, `time`, `day_of_week`, `weekly_hours` and `timezone`. All must hold. Absent or empty: the policy always applies.',
});

const OFFICE_HOURS = {
  name: 'office-hours',
  effect: 'deny',
  actions: ['chat:*'],
  resources: ['*'],
  conditions: { weekly_hours: { not_in: ['Mon-Fri 08:00-18:00'] }, timezone: 'Europe/Berlin' },
  enabled: false,
};

/** Everyone is not named role by role. */
const wholeAudience = asksAlso({
  not: {
    required: ['applies_to', 'attached_roles'],
    properties: { applies_to: { const: 'everyone' }, attached_roles: { minItems: 1 } },
  },
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

export const newPolicy = component(
  'NewPolicy',
  Type.Object(
    {
      name: Type.String({ maxLength: 64, ...aName }),
      effect,
      actions: somePatterns,
      resources: someResourcePatterns,
      ...optional,
    },
    { ...closed, ...wholeAudience, examples: [OFFICE_HOURS] },
  ),
);

const changes = component(
  'PolicyChanges',
  Type.Object(
    {
      effect: Type.Optional(effect),
      actions: Type.Optional(somePatterns),
      resources: Type.Optional(someResourcePatterns),
      ...optional,
    },
    { ...closed, ...wholeAudience, examples: [{ enabled: false }] },
  ),
);

const listing = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    q: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Any part of the name or description, in any case.' }),
    ),
    effect: Type.Optional(effect),
    enabled: Type.Optional(Type.Boolean()),
    applies_to: Type.Optional(appliesTo),
    role: Type.Optional(Type.String({ maxLength: 64, description: 'A role that the policy is attached to.' })),
    global: Type.Optional(
      Type.Boolean({ description: "`true`: only global policies. `false`: only the tenant's policies." }),
    ),
  },
  closed,
);

const POLICIES = '/v1/iam/policies';
const POLICY = '/v1/iam/policies/:name';

export function policyEndpoints(parts: AdminParts & CatalogParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: POLICIES,
      operationId: 'listPolicies',
      summary: 'List policies, including the global policies.',
      permission: 'admin:policies',
      body: NOTHING,
      query: listing,
      answers: shows('One page of policies.', listOf(Policy)),
      refusals: [],
      handler: async ({ caller, query }) => ({
        status: 200,
        body: await listPoliciesPage(parts, caller, withoutTenant(query)),
      }),
    }),
    callerEndpoint({
      method: 'POST',
      path: POLICIES,
      operationId: 'createPolicy',
      summary: 'Create a policy.',
      permission: 'admin:policies',
      body: newPolicy,
      maxBodyBytes: MAX_BODY_BYTES,
      query: forcedStrictly,
      answers: makes('The policy.', Policy),
      refusals: ['escalation', 'already_exists', 'would_lock_out', 'quota_exceeded'],
      handler: async ({ caller, body, query }) => {
        if (query.strict === true) refuseUnneeded(parts, body.actions, '/actions');
        const policy = noticedPolicy(parts, await createPolicy(parts, caller, body, query.force === true));
        return { status: 201, body: policy, headers: { location: `${POLICIES}/${policy.name}` } };
      },
    }),
    callerEndpoint({
      method: 'GET',
      path: POLICY,
      operationId: 'getPolicy',
      summary: 'Get a policy.',
      permission: 'admin:policies',
      body: NOTHING,
      query: NOTHING,
      answers: shows('The policy.', Policy, TAGGED),
      refusals: ['not_found'],
      handler: async ({ caller, param }) => ({
        status: 200,
        body: noticedPolicy(parts, await getPolicy(parts, caller, param('name'))),
      }),
    }),
    callerEndpoint({
      method: 'PUT',
      path: POLICY,
      operationId: 'updatePolicy',
      summary: 'Update a policy: the members that are present.',
      permission: 'admin:policies',
      body: changes,
      maxBodyBytes: MAX_BODY_BYTES,
      query: forcedStrictly,
      answers: shows('The updated policy.', Policy, TAGGED),
      refusals: ['not_found', 'escalation', 'would_lock_out', 'quota_exceeded', 'precondition_failed'],
      handler: async ({ caller, param, body, query }) => {
        if (query.strict === true) refuseUnneeded(parts, body.actions, '/actions');
        const policy = await updatePolicy(parts, caller, param('name'), body, query.force === true);
        return { status: 200, body: noticedPolicy(parts, policy) };
      },
    }),
    callerEndpoint({
      method: 'DELETE',
      path: POLICY,
      operationId: 'deletePolicy',
      summary: 'Delete a policy.',
      permission: 'admin:policies',
      body: NOTHING,
      query: NOTHING,
      answers: DONE,
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      handler: async ({ caller, param }) => {
        await deletePolicy(parts, caller, param('name'));
        return { status: 204 };
      },
    }),
  ];
}
