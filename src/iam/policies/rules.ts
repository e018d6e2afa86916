/** The rules for every write of a policy: permission for global policies, audience, and lock-out of the author. */

import { compilePolicies } from '../../decision/compile.ts';
import { decideManagement } from '../../decision/management.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import type { RoleName, TenantId } from '../../domain/ids.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { escalation, invalidField, throwIfInvalid } from '../caller/refusals.ts';
import { knownRoles } from '../users/checks.ts';
import { type PolicyRow, type PolicyValues, policyRecord } from './entity.ts';

/**
 * @throws Refusal `escalation` for a global policy, unless the caller is a platform administrator.
 * @param owner null: global
 */
export function mayWriteOwner(caller: Caller, owner: TenantId | null): void {
  if (owner === null && !isPlatformAdmin(caller.principal)) {
    throw escalation('Only platform administrators may create, update or delete global policies.');
  }
}

/**
 * Reads the roles that a policy is attached to: roles of the tenant or built-in ones, for a global policy only built-in
 * ones.
 * @param owner null: global
 * @throws Refusal `invalid_field`
 */
export async function attachableRoles(
  trx: Transaction,
  owner: TenantId | null,
  names: readonly string[],
): Promise<readonly RoleName[]> {
  if (owner !== null) return knownRoles(trx, owner, names, '/attached_roles');
  throwIfInvalid(
    names.flatMap((name, i) =>
      isBuiltinRole(name)
        ? []
        : [{ path: `/attached_roles/${i}`, message: 'Only built-in roles may be attached to a global policy.' }],
    ),
  );
  return [...new Set(names)].filter((name): name is RoleName => isBuiltinRole(name));
}

export const EVERYONE_WITHOUT_ROLES = 'A policy that applies to everyone must not have attached roles.';

export interface Audience extends Pick<PolicyRow, 'applies_to'> {
  /** Names as requested. They may not exist. */
  readonly attached_roles: readonly string[];
}

/** The audience of a new policy whose request does not name one. */
export function initialAudience(effect: PolicyRow['effect']): Audience {
  return { applies_to: effect === 'deny' ? 'everyone' : 'roles', attached_roles: [] };
}

/**
 * Returns the audience after a request. A request that names roles implies `roles`, and `everyone` detaches all roles.
 * @throws Refusal `invalid_field` for `everyone` together with roles
 */
export function audienceAfter(
  before: Audience,
  applies_to: Audience['applies_to'] | undefined,
  attached_roles: readonly string[] | undefined,
): Audience {
  if (applies_to === 'everyone') {
    if (attached_roles !== undefined && attached_roles.length > 0) {
      throw invalidField('/attached_roles', EVERYONE_WITHOUT_ROLES);
    }
    return { applies_to, attached_roles: [] };
  }
  if (attached_roles !== undefined) return { applies_to: 'roles', attached_roles };
  return applies_to === undefined ? before : { ...before, applies_to };
}

/**
 * Rejects a deny policy that alone would now deny the caller the permission to manage policies.
 * @param force skips the check
 * @throws Refusal `would_lock_out`
 */
export function refuseLockOut(caller: HeldCaller, policy: PolicyValues, force: boolean): void {
  if (force || policy.effect !== 'deny') return;
  const alone = compilePolicies([policyRecord(policy)]);
  const none = compilePolicies([]);
  const { own, effective, builtinRoles } = caller.snapshot;
  const local = policy.tenant_id === null ? none : alone;
  const decision = decideManagement({
    permission: 'admin:policies',
    self: true,
    principal: caller.principal,
    snapshot: {
      own: own && { ...own, policies: local },
      effective: effective && { ...effective, policies: local },
      global: policy.tenant_id === null ? alone : none,
      builtinRoles,
    },
    clientAddress: caller.address,
    nowMs: caller.nowMs,
  });
  if (decision.kind === 'deny' && decision.code === 'denied_by_policy') {
    throw new Refusal(
      'would_lock_out',
      'This policy would deny you admin:policies. Use force=true to write it anyway.',
      {
        policy: policy.name,
      },
    );
  }
}
