/** Creates a policy of the effective tenant or a global one. */

import { parseConditions, validatePatterns, validateResourcePatterns } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { parsePolicyName } from '../../domain/ids.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayWritePolicy } from '../caller/escalation.ts';
import { invalidField, NAME_FORM, tenantGone, throwIfInvalid, valid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { lockTenant } from '../tenants/queries.ts';
import { type NewPolicy, type PolicyResource, type PolicyValues, policyResource } from './entity.ts';
import { insertPolicy, isPolicyNameTaken, reservePolicyName } from './queries.ts';
import {
  type Audience,
  attachableRoles,
  audienceAfter,
  initialAudience,
  mayWriteOwner,
  refuseLockOut,
} from './rules.ts';

/**
 * @param force writes the policy even if it denies the caller `admin:policies`
 * @throws Refusal `invalid_field`, `escalation`, `already_exists`, `would_lock_out`
 */
export async function createPolicy(
  parts: AdminParts,
  caller: Caller,
  request: NewPolicy,
  force: boolean,
): Promise<PolicyResource> {
  const { audience, ...values } = readNewPolicy(request);
  const { name } = values;
  const owner = request.global === true ? null : caller.tenant;
  const target = { type: 'policy', id: name } as const;
  return change(parts, caller, { action: 'policy.create', target }, async ({ trx, caller, audit }) => {
    mayWriteOwner(caller, owner);
    if ((await lockTenant(trx, caller.tenant, 'share')) === undefined) throw tenantGone();
    const policy: PolicyValues = {
      ...values,
      tenant_id: owner,
      applies_to: audience.applies_to,
      attached_roles: await attachableRoles(trx, owner, audience.attached_roles),
    };
    mayWritePolicy(caller, undefined, policy);
    await reservePolicyName(trx, name);
    if (await isPolicyNameTaken(trx, owner, name)) throw taken(owner === null);
    refuseLockOut(caller, policy, force);
    const created = policyResource(await insertPolicy(trx, policy));
    audit.tenant = owner ?? undefined;
    audit.after = created;
    return created;
  });
}

/** A new policy without the parts that depend on the database. */
interface ReadPolicy extends Omit<PolicyValues, 'tenant_id' | 'applies_to' | 'attached_roles'> {
  readonly audience: Audience;
}

/** @throws Refusal `invalid_field` */
export function readNewPolicy(request: NewPolicy): ReadPolicy {
  const name = parsePolicyName(request.name);
  if (name === undefined) throw invalidField('/name', NAME_FORM);
  const conditions = valid(parseConditions(request.conditions));
  throwIfInvalid([
    ...validatePatterns(request.actions, '/actions'),
    ...validateResourcePatterns(request.resources, '/resources'),
  ]);
  const { description = '', effect, actions, resources, mode = 'enforce', enabled = true } = request;
  const audience = audienceAfter(initialAudience(effect), request.applies_to, request.attached_roles);
  return { name, description, effect, actions, resources, conditions, mode, enabled, audience };
}

function taken(global: boolean): Refusal {
  const detail = global
    ? 'A global policy or a policy of a tenant already has this name. Choose another name.'
    : 'A policy with this name already exists. Choose another name.';
  return new Refusal('already_exists', detail, { param: 'name' });
}
