/** Making a policy, of the effective tenant or global. */

import type { Conditions } from '../../decision/condition-table.ts';
import { parseConditions, validatePatterns, validateResourcePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { type PolicyName, parsePolicyName } from '../../domain/ids.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayWritePolicy } from '../caller/escalation.ts';
import { invalidField, notFound, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import {
  findPolicy,
  insertPolicy,
  isPolicyNameTaken,
  type NewPolicy,
  reservePolicyName,
  setAttachedRoles,
} from './queries.ts';
import { type PolicyResource, policyResource } from './resource.ts';
import { type Audience, attachableRoles, audienceAfter, mayWriteOwner, refuseLockOut } from './rules.ts';

export interface NewPolicyRequest {
  readonly name: string;
  readonly description?: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  /** Any object; checked here. */
  readonly conditions?: unknown;
  readonly applies_to?: 'everyone' | 'roles';
  readonly attached_roles?: readonly string[];
  readonly global?: boolean;
  readonly enabled?: boolean;
}

/**
 * @param force writes it even when it denies its author `admin:policies`
 * @throws Refusal `invalid_field`, `escalation`, `already_exists`, `would_lock_out`
 */
export async function createPolicy(
  parts: AdminParts,
  caller: Caller,
  request: NewPolicyRequest,
  force: boolean,
): Promise<PolicyResource> {
  const { name, conditions, audience } = readNewPolicy(request);
  const tenantId = request.global === true ? undefined : caller.tenant;
  return change(
    parts,
    caller,
    { action: 'policy.create', target: { type: 'policy', id: name } },
    async ({ trx, caller, audit }) => {
      mayWriteOwner(caller, tenantId);
      if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
      const policy: NewPolicy = {
        tenantId,
        name,
        description: request.description ?? '',
        effect: request.effect,
        actions: request.actions,
        resources: request.resources,
        conditions,
        appliesTo: audience.appliesTo,
        attachedRoles: await attachableRoles(trx, tenantId, audience.roles),
        enabled: request.enabled ?? true,
      };
      mayWritePolicy(caller, undefined, policy);
      await reservePolicyName(trx, name);
      if (await isPolicyNameTaken(trx, tenantId, name)) throw taken(tenantId === undefined);
      refuseLockOut(caller, policy, force);
      await setAttachedRoles(trx, await insertPolicy(trx, policy), policy.attachedRoles);
      const made = await findPolicy(trx, caller.tenant, name);
      if (made === undefined) throw notFound('policy');
      audit.tenant = tenantId;
      audit.after = policyResource(made);
      return policyResource(made);
    },
  );
}

/** What can be told of a new policy from its request alone; its roles are not looked up yet. */
export interface ReadPolicy {
  readonly name: PolicyName;
  readonly conditions: Conditions;
  readonly audience: Audience;
}

/** @throws Refusal `invalid_field` */
export function readNewPolicy(request: NewPolicyRequest): ReadPolicy {
  const name = newPolicyName(request.name);
  const conditions = valid(parseConditions(request.conditions));
  throwIfInvalid([
    ...validatePatterns(request.actions, '/actions'),
    ...validateResourcePatterns(request.resources, '/resources'),
  ]);
  const initial = { appliesTo: request.effect === 'deny' ? 'everyone' : 'roles', roles: [] } as const;
  return { name, conditions, audience: audienceAfter(initial, request.applies_to, request.attached_roles) };
}

function newPolicyName(text: string): PolicyName {
  const name = parsePolicyName(text);
  if (name === undefined)
    throw invalidField(
      '/name',
      'A name must be 1 to 63 lowercase letters, digits, _ or -, and must start with a letter.',
    );
  return name;
}

function taken(global: boolean): Refusal {
  const detail = global
    ? 'A global policy or a policy of a tenant already has this name. Choose another name.'
    : 'A policy with this name already exists. Choose another name.';
  return new Refusal('already_exists', detail, { param: 'name' });
}
