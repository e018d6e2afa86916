/** The rules that every write of a policy keeps: who writes global ones, to whom a policy applies, and that nobody locks itself out. */

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
import { knownRoles } from '../users/roles.ts';
import type { NewPolicy } from './queries.ts';
import { recordOf } from './record.ts';

/** @throws Refusal `escalation` when a global policy is written by anybody but a platform administrator */
export function mayWriteOwner(caller: Caller, tenantId: TenantId | undefined): void {
  if (tenantId === undefined && !isPlatformAdmin(caller.principal)) {
    throw escalation('Only platform administrators may create, update or delete global policies.');
  }
}

/**
 * Reads the roles that a policy is attached to: the tenant's own or built-in ones, for a global policy built-in ones alone.
 * @throws Refusal `invalid_field`
 */
export async function attachableRoles(
  trx: Transaction,
  tenantId: TenantId | undefined,
  names: readonly string[],
): Promise<readonly RoleName[]> {
  if (tenantId !== undefined) return knownRoles(trx, tenantId, names, '/attached_roles');
  throwIfInvalid(
    names.flatMap((name, i) =>
      isBuiltinRole(name)
        ? []
        : [{ path: `/attached_roles/${i}`, message: 'Only built-in roles may be attached to a global policy.' }],
    ),
  );
  return [...new Set(names)].filter((name): name is RoleName => isBuiltinRole(name));
}

export interface Audience {
  readonly appliesTo: 'everyone' | 'roles';
  /** Names as requested; not looked up yet. */
  readonly roles: readonly string[];
}

/**
 * To whom a policy applies after a request. Naming roles means `roles`; `everyone` leaves no role attached.
 * @throws Refusal `invalid_field` for `everyone` together with roles
 */
export function audienceAfter(
  before: Audience,
  appliesTo: Audience['appliesTo'] | undefined,
  roles: readonly string[] | undefined,
): Audience {
  if (appliesTo === 'everyone') {
    if (roles !== undefined && roles.length > 0) {
      throw invalidField('/attached_roles', 'A policy that applies to everyone must not have attached roles.');
    }
    return { appliesTo: 'everyone', roles: [] };
  }
  if (roles !== undefined) return { appliesTo: 'roles', roles };
  return appliesTo === undefined ? before : { appliesTo, roles: before.roles };
}

/**
 * Asks whether this policy, by itself, would now deny its author the right to manage policies.
 * @throws Refusal `would_lock_out`
 */
export function refuseLockOut(caller: HeldCaller, policy: NewPolicy, force: boolean): void {
  if (force || policy.effect !== 'deny') return;
  const alone = compilePolicies([recordOf(policy)]);
  const none = compilePolicies([]);
  const { own, effective, builtinRoles } = caller.snapshot;
  const local = policy.tenantId === undefined ? none : alone;
  const decision = decideManagement({
    permission: 'admin:policies',
    self: true,
    principal: caller.principal,
    snapshot: {
      own: own && { ...own, policies: local },
      effective: effective && { ...effective, policies: local },
      global: policy.tenantId === undefined ? alone : none,
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
