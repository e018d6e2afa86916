/**
 * Prevents escalation. The permissions that a change grants, or those of the user or key that it acts on, are read in
 * its transaction and compared with the caller's permissions there. Each function throws a Refusal `escalation` that
 * names the first permission that the caller does not have.
 */

import { pauses } from '../../concurrency/pauses.ts';
import { compileGrant, compilePolicies, compileTenant } from '../../decision/compile.ts';
import {
  added,
  addedByPolicy,
  firstMissing,
  type PermissionSet,
  permissionsOfCaller,
  permissionsOfGrant,
  permissionsOfKey,
  permissionsOfRole,
  permissionsOfUser,
  type TenantRules,
} from '../../decision/escalation.ts';
import type { IssuerId, KeyId, RoleName, TenantId } from '../../domain/ids.ts';
import type { ResourceConstraints } from '../../domain/records.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { KeyRow } from '../api-keys/entity.ts';
import { grantsOfKeys, type KeyGrant, provedGrants, rolesOfLinkedUsers } from '../issuers/reference-queries.ts';
import { type PolicyRow, type PolicyValues, policyRecord } from '../policies/entity.ts';
import { enabledAllowPolicies } from '../policies/queries.ts';
import { roleRecord } from '../roles/entity.ts';
import { findRoles } from '../roles/queries.ts';
import { rolesOfUser, type UserRow } from '../users/entity.ts';
import { findUser } from '../users/queries.ts';
import { selfId } from './caller.ts';
import type { HeldCaller } from './hold-caller.ts';
import { escalation } from './refusals.ts';

interface Grantable {
  readonly permissions: readonly string[];
  readonly constraints: ResourceConstraints;
}

/** For a new role, or a new key with these scopes. */
export function mayGive(caller: HeldCaller, given: Grantable): void {
  refuseLacking(
    caller,
    permissionsOfGrant(given.permissions, given.constraints),
    'You cannot grant permissions that you do not have:',
  );
}

/** For an update of a role or key. Only the permissions that it adds count. */
export function mayWiden(caller: HeldCaller, before: Grantable, after: Grantable): void {
  const given = added(
    permissionsOfGrant(after.permissions, after.constraints),
    permissionsOfGrant(before.permissions, before.constraints),
  );
  refuseLacking(caller, given, 'You cannot grant permissions that you do not have:');
}

/**
 * For a new, updated or attached policy. Only the permissions that an allow policy adds count. A policy that stays
 * report-only is checked as if it were in force, because it is written to be enforced later. When it is enforced, it
 * adds everything that it allows.
 */
export function mayWritePolicy(caller: HeldCaller, before: PolicyValues | undefined, after: PolicyValues): void {
  refuseLacking(
    caller,
    addedByPolicy(
      before && policyRecord(after.mode === 'report' ? asEnforced(before) : before),
      policyRecord(asEnforced(after)),
    ),
    'You cannot allow permissions that you do not have:',
  );
}

function asEnforced(policy: PolicyValues): PolicyValues {
  return { ...policy, mode: 'enforce' };
}

/** For the assignment of roles of the effective tenant. Allow policies that are attached to them count. */
export async function mayGiveRoles(trx: Transaction, caller: HeldCaller, roles: readonly RoleName[]): Promise<void> {
  if (roles.length === 0) return;
  const rules = await loadTenantRules(trx, caller, caller.tenant, roles);
  for (const role of roles)
    refuseLacking(caller, permissionsOfRole(role, rules), `The role ${role} grants permissions that you do not have:`);
}

/** The largest number of different grants of an issuer's keys that are compared. */
const MAX_GRANTS = 10_000;
/** The time of their comparison. Its transaction has locks for which a revocation may wait. */
const MAX_COMPARISON_MS = 600;

/**
 * For a change after which tokens of an issuer prove more, and for its deletion. The roles of its mapping, the keys with
 * a proof of it and its linked users count, except the caller's own.
 * @param provesUsers false: its tokens prove no user, so the linked users do not count
 */
export async function mayGiveByIssuer(
  trx: Transaction,
  caller: HeldCaller,
  issuer: IssuerId,
  { mapped, provesUsers }: { readonly mapped: readonly RoleName[]; readonly provesUsers: boolean },
): Promise<void> {
  await mayGiveRoles(trx, caller, mapped);
  const self = selfId(caller);
  const grants = await provedGrants(trx, issuer, self, MAX_GRANTS + 1);
  const linked = provesUsers ? await rolesOfLinkedUsers(trx, issuer, self) : [];
  const rules = await loadTenantRules(trx, caller, caller.tenant, [...linked, ...ownerRoles(grants)]);
  await refuseLackingGrants(caller, grants, rules, 'A key of this issuer has permissions that you do not have:');
  if (linked.length > 0) {
    const given = permissionsOfUser(linked, rules);
    refuseLacking(caller, given, 'A user of this issuer has permissions that you do not have:');
  }
}

/** For a proof that takes tokens from these keys of the effective tenant. The caller's own keys do not count. */
export async function mayTakeFromKeys(trx: Transaction, caller: HeldCaller, keys: readonly KeyId[]): Promise<void> {
  if (keys.length === 0) return;
  const { id, scope } = caller.principal;
  const others = scope === undefined ? keys.filter((key) => key !== id) : keys;
  const grants = await grantsOfKeys(trx, others, selfId(caller));
  const rules = await loadTenantRules(trx, caller, caller.tenant, ownerRoles(grants));
  await refuseLackingGrants(
    caller,
    grants,
    rules,
    'The proof takes tokens from a key with permissions that you do not have:',
  );
}

function ownerRoles(grants: readonly KeyGrant[]): readonly RoleName[] {
  return [...new Set(grants.flatMap(({ roles }) => roles ?? []))];
}

/** Everything that a caller can have. */
const EVERYTHING: PermissionSet = { platformAdmin: true, permissions: [{ pattern: '*', limits: [] }] };

/** @throws Refusal `escalation`, also if the grants are too many to compare */
async function refuseLackingGrants(
  { principal, snapshot }: HeldCaller,
  grants: readonly KeyGrant[],
  rules: TenantRules,
  messagePrefix: string,
): Promise<void> {
  const held = permissionsOfCaller(principal, snapshot);
  if (firstMissing(held, EVERYTHING) === undefined) return;
  const pause = pauses();
  const endsMs = performance.now() + MAX_COMPARISON_MS;
  for (const [i, { scopes, resource_constraints, roles: owner }] of grants.entries()) {
    if (i === MAX_GRANTS || performance.now() > endsMs) {
      throw escalation(
        'The keys of this issuer are too different to compare. A platform administrator may make this change.',
      );
    }
    await pause();
    refuseMissing(
      held,
      permissionsOfKey(compileGrant(scopes, resource_constraints), owner ?? undefined, rules),
      messagePrefix,
    );
  }
}

/**
 * For every change of a user. A caller may always change itself.
 * @param allowPolicies the enabled allow policies of the user's tenant and the global ones. Default: they are read
 */
export async function mayActOnUser(
  trx: Transaction,
  caller: HeldCaller,
  user: UserRow,
  allowPolicies?: readonly PolicyRow[],
): Promise<void> {
  if (user.id === selfId(caller)) return;
  const roles = rolesOfUser(user);
  const rules = await loadTenantRules(trx, caller, user.tenant_id, roles, allowPolicies);
  refuseLacking(caller, permissionsOfUser(roles, rules), 'The user has permissions that you do not have:');
}

/**
 * For the revocation of a key. Its owner always may revoke it, and so may the key itself.
 * @param allowPolicies as for `mayActOnUser`
 */
export async function mayActOnKey(
  trx: Transaction,
  caller: HeldCaller,
  key: KeyRow,
  allowPolicies?: readonly PolicyRow[],
): Promise<void> {
  if (isOwnKey(caller, key)) return;
  const owner = key.user_id === null ? undefined : await findUser(trx, key.tenant_id, key.user_id);
  // A key of a deleted user proves nothing.
  if (key.user_id !== null && owner === undefined) return;
  const roles = owner && rolesOfUser(owner);
  const rules = await loadTenantRules(trx, caller, key.tenant_id, roles ?? [], allowPolicies);
  const given = permissionsOfKey(compileGrant(key.scopes, key.resource_constraints), roles, rules);
  refuseLacking(caller, given, 'The key has permissions that you do not have:');
}

/** For an update or rotation of a key, which acts on its owner as well. */
export async function mayChangeKey(trx: Transaction, caller: HeldCaller, key: KeyRow): Promise<void> {
  if (isOwnKey(caller, key)) return;
  await mayActOnKey(trx, caller, key);
  const owner = key.user_id === null ? undefined : await findUser(trx, key.tenant_id, key.user_id);
  if (owner !== undefined) await mayActOnUser(trx, caller, owner);
}

function isOwnKey(caller: HeldCaller, key: KeyRow): boolean {
  const { id, scope } = caller.principal;
  return (id === key.id && scope === undefined) || (key.user_id !== null && key.user_id === selfId(caller));
}

function refuseLacking({ principal, snapshot }: HeldCaller, given: PermissionSet, messagePrefix: string): void {
  refuseMissing(permissionsOfCaller(principal, snapshot), given, messagePrefix);
}

function refuseMissing(held: PermissionSet, given: PermissionSet, messagePrefix: string): void {
  const pattern = firstMissing(held, given);
  if (pattern !== undefined) throw escalation(`${messagePrefix} ${pattern}.`);
}

/**
 * Reads the part of a tenant that permissions follow from, in the transaction: these roles and all enabled allow
 * policies.
 */
async function loadTenantRules(
  trx: Transaction,
  { snapshot: { builtinRoles } }: HeldCaller,
  tenant: TenantId,
  names: readonly RoleName[],
  allowPolicies?: readonly PolicyRow[],
): Promise<TenantRules> {
  const roles = await findRoles(trx, tenant, names);
  const policies = allowPolicies ?? (await enabledAllowPolicies(trx, tenant));
  const own = compileTenant({
    id: tenant,
    status: 'active',
    settings: {},
    quotas: {},
    roles: roles.map(roleRecord),
    policies: policies.filter((policy) => policy.tenant_id !== null).map(policyRecord),
  });
  const global = compilePolicies(policies.filter((policy) => policy.tenant_id === null).map(policyRecord));
  return { own, global, builtinRoles };
}
