/**
 * Escalation: a caller must not give what it does not have, and must not act on a principal with more permissions. Both
 * rules compare permission sets: the permissions of a principal, or those that a role, a key or an allow policy would
 * give. Deny policies take nothing away.
 */

import type { RoleName } from '../domain/ids.ts';
import { canonicalJsonOf } from '../domain/json.ts';
import type { PolicyRecord, ResourceConstraints } from '../domain/records.ts';
import { ADMIN, isBuiltinRole } from '../domain/roles.ts';
import { effectiveRoles } from './builtin-roles.ts';
import { type Check, compileConditions, type ReadableCheck } from './conditions.ts';
import { compileGlob, type Glob, globContains } from './globs.ts';
import type { Grant } from './grants.ts';
import { type Principal, RESOURCE_KINDS, type ResourceKind, type Snapshot, type TenantView } from './model.ts';
import { containingPatterns, patternContains, patternIntersection } from './permissions.ts';
import { type CompiledPolicy, type PolicySet, parseResourcePattern } from './policies.ts';
import { isPlatformAdmin } from './tenant.ts';

/** One limit on the resources that a pattern covers. */
export interface Limit {
  readonly constraints: ResourceConstraints;
  /**
   * True if the limit comes from a policy that names resources: requests that name no resource are then not covered.
   */
  readonly namedOnly: boolean;
}

/** One pattern under all of its limits together. */
interface HeldPermission {
  readonly pattern: string;
  readonly limits: readonly Limit[];
}

export interface PermissionSet {
  readonly platformAdmin: boolean;
  readonly permissions: readonly HeldPermission[];
}

export const NO_PERMISSIONS: PermissionSet = Object.freeze({ platformAdmin: false, permissions: [] });

/** The allow policies that count: the unconditional ones of a caller, all of a target or a role. */
type Counted = 'unconditional' | 'all';

function names(limit: Limit, kind: ResourceKind): readonly string[] | undefined {
  const list = limit.constraints[kind];
  return list === undefined || list === null || list.includes('*') ? undefined : list;
}

function isContained(inner: Glob, globs: readonly Glob[]): boolean {
  return globs.some((glob) => globContains(glob, inner));
}

/**
 * The largest number of pairs of names that one comparison of permissions compares, some 0.2 s. Administrators choose
 * how many rules a principal has, each with its own list of names.
 */
const MAX_PAIRS = 5_000_000;

/** The pairs that are left for one comparison. Negative: a permission then counts as not contained. */
interface Pairs {
  left: number;
}

/** The comparisons of two limits for each kind. All patterns of a rule share a limit, and it never changes. */
const compared = new WeakMap<Limit, WeakMap<Limit, Map<ResourceKind, boolean>>>();

/**
 * Reports whether a limit narrows the kind to names that the other limit has. @param held the names of the other one
 */
function narrowsTo(given: Limit, limit: Limit, held: readonly string[], kind: ResourceKind, pairs: Pairs): boolean {
  const list = names(given, kind);
  if (list === undefined) return false;
  const known = compared.getOrInsert(given, new WeakMap()).getOrInsert(limit, new Map());
  if (!known.has(kind)) pairs.left -= list.length * held.length;
  if (pairs.left < 0) return false;
  return known.getOrInsertComputed(kind, () => {
    const globs = held.map(compileGlob);
    return list.every((name) => isContained(compileGlob(name), globs));
  });
}

/**
 * Reports whether a permission stays within a limit: for each kind that the limit narrows, one limit of the permission
 * narrows it as far.
 */
function within(given: HeldPermission, limit: Limit, pairs: Pairs): boolean {
  if (limit.namedOnly && !given.limits.some((one) => one.namedOnly)) return false;
  return RESOURCE_KINDS.every((kind) => {
    const held = names(limit, kind);
    return held === undefined || given.limits.some((one) => narrowsTo(one, limit, held, kind, pairs));
  });
}

/**
 * Reports whether a held permission contains the given one: its pattern covers the given pattern, under no narrower
 * limits.
 */
function contains(held: HeldPermission, given: HeldPermission, pairs: Pairs): boolean {
  return patternContains(held.pattern, given.pattern) && held.limits.every((limit) => within(given, limit, pairs));
}

/**
 * Returns the permissions of `set` that `before` does not contain: only what a change adds counts.
 * @param pairs bounds the comparison. Default: `MAX_PAIRS`
 */
export function added(set: PermissionSet, before: PermissionSet, pairs: Pairs = { left: MAX_PAIRS }): PermissionSet {
  const held = Map.groupBy(before.permissions, ({ pattern }) => pattern);
  const isHeld = (given: HeldPermission): boolean =>
    containingPatterns(given.pattern).some((pattern) => held.get(pattern)?.some((one) => contains(one, given, pairs)));
  return {
    platformAdmin: set.platformAdmin && !before.platformAdmin,
    permissions: set.permissions.filter((given) => !isHeld(given)),
  };
}

/**
 * Returns the first given permission that the caller does not have, for the detail of the answer; undefined = none. No
 * principal is stronger than itself, so callers that act on themselves must not be compared.
 */
export function firstMissing(caller: PermissionSet, given: PermissionSet): string | undefined {
  if (given.platformAdmin && !caller.platformAdmin) return ADMIN;
  return added(given, caller).permissions[0]?.pattern;
}

function limited(patterns: readonly string[], limits: readonly Limit[]): HeldPermission[] {
  return [...new Set(patterns)].map((pattern) => ({ pattern, limits }));
}

function isNarrow(constraints: ResourceConstraints): boolean {
  return RESOURCE_KINDS.some((kind) => constraints[kind] !== undefined && constraints[kind] !== null);
}

function ofGrant(patterns: readonly string[], constraints: ResourceConstraints): HeldPermission[] {
  return limited(patterns, isNarrow(constraints) ? [{ constraints, namedOnly: false }] : []);
}

/** Returns the permissions that a new role, or the scopes of a key, would give. */
export function permissionsOfGrant(patterns: readonly string[], constraints: ResourceConstraints): PermissionSet {
  return { platformAdmin: false, permissions: ofGrant(patterns, constraints) };
}

function ofAllow(record: PolicyRecord): HeldPermission[] {
  if (record.resources.includes('*')) return limited(record.actions, []);
  const constraints: Record<ResourceKind, string[]> = { models: [], collections: [], agents: [] };
  for (const text of record.resources) {
    const pattern = parseResourcePattern(text);
    if (pattern !== undefined) constraints[pattern.kind].push(pattern.glob);
  }
  return limited(record.actions, [{ constraints, namedOnly: true }]);
}

/** Returns the permissions that a policy gives. A deny and a disabled policy give none. */
export function permissionsOfPolicy(record: PolicyRecord): PermissionSet {
  return record.effect === 'allow' && record.enabled
    ? { platformAdmin: false, permissions: ofAllow(record) }
    : NO_PERMISSIONS;
}

function reachesAll(after: PolicyRecord, before: PolicyRecord): boolean {
  if (before.appliesTo === 'everyone') return true;
  return after.appliesTo === 'roles' && after.attachedRoles.every((role) => before.attachedRoles.includes(role));
}

/**
 * Reports whether all conditions from before are left. All must hold, so further ones only narrow the policy. An allow
 * with a condition that this version cannot read allows nothing, so every change of its conditions may widen it.
 */
function keepsConditions(after: PolicyRecord, before: PolicyRecord): boolean {
  if (canonicalJsonOf(after.conditions) === canonicalJsonOf(before.conditions)) return true;
  const [left, old] = [compileConditions(after.conditions), compileConditions(before.conditions)];
  return old.checks.every(
    (check) =>
      check.kind === 'readable' &&
      (!check.condition.usesClock || left.timezone === old.timezone) &&
      left.checks.some((one) => isSameCheck(one, check)),
  );
}

function isSameCheck(check: Check, { key, operator, operand }: ReadableCheck): boolean {
  return (
    check.kind === 'readable' &&
    check.key === key &&
    check.operator === operator &&
    canonicalJsonOf(check.operand) === canonicalJsonOf(operand)
  );
}

/**
 * Returns what writing a policy adds. If it loses or changes a condition, or if it applies to further principals, all of
 * it is new.
 */
export function addedByPolicy(before: PolicyRecord | undefined, after: PolicyRecord): PermissionSet {
  const set = permissionsOfPolicy(after);
  if (before === undefined || !reachesAll(after, before) || !keepsConditions(after, before)) return set;
  return added(set, permissionsOfPolicy(before));
}

function isUnconditional(policy: CompiledPolicy): boolean {
  return policy.conditions.checks.length === 0;
}

function ofPolicies(set: PolicySet, applies: (policy: CompiledPolicy) => boolean, counted: Counted): HeldPermission[] {
  return set.allows.policies
    .filter((policy) => applies(policy) && (counted === 'all' || isUnconditional(policy)))
    .flatMap((policy) => ofAllow(policy.record));
}

/**
 * The part of a snapshot that permissions follow from: a tenant, its roles and policies, and those that all tenants
 * share.
 */
export type TenantRules = Pick<Snapshot, 'global' | 'builtinRoles'> & { readonly own: TenantView };

/** The permissions of a user's roles in its own tenant, with the allow policies that apply to the user. */
function ofRoles(roles: readonly RoleName[], rules: TenantRules, counted: Counted): HeldPermission[] {
  const { own, global, builtinRoles } = rules;
  const grants = roles.flatMap((role) => {
    const grant = builtinRoles.grantOf(role, own);
    return grant === undefined ? [] : ofGrant(grant.patterns, grant.constraints);
  });
  const applies = (policy: CompiledPolicy) =>
    policy.roles === undefined || roles.some((role) => policy.roles?.has(role));
  return [...grants, ...ofPolicies(own.policies, applies, counted), ...ofPolicies(global, applies, counted)];
}

/** The patterns of both sides that overlap, under the limits of both. */
function overlap(left: readonly HeldPermission[], right: readonly HeldPermission[]): HeldPermission[] {
  return left.flatMap((one) =>
    right.flatMap((other) => {
      const pattern = patternIntersection(one.pattern, other.pattern);
      return pattern === undefined ? [] : [{ pattern, limits: [...one.limits, ...other.limits] }];
    }),
  );
}

function ofKey(
  grant: Grant,
  owner: readonly RoleName[] | undefined,
  rules: TenantRules,
  counted: Counted,
): PermissionSet {
  const scopes = ofGrant(grant.patterns, grant.constraints);
  return {
    platformAdmin: false,
    permissions: owner === undefined ? scopes : overlap(scopes, ofRoles(owner, rules, counted)),
  };
}

/**
 * Returns the permissions of a caller: its roles and its unconditional allow policies. A key has its scopes within its
 * owner's, and a narrowed session only the permissions of its scope.
 */
export function permissionsOfCaller(principal: Principal, snapshot: Omit<Snapshot, 'effective'>): PermissionSet {
  return ofPrincipal(principal, snapshot, 'unconditional');
}

/**
 * Like `permissionsOfCaller`, with the conditional allow policies: everything that the principal may have at a time.
 */
export function permissionsOfPrincipal(principal: Principal, snapshot: Omit<Snapshot, 'effective'>): PermissionSet {
  return ofPrincipal(principal, snapshot, 'all');
}

function ofPrincipal(
  principal: Principal,
  { own, global, builtinRoles }: Omit<Snapshot, 'effective'>,
  counted: Counted,
): PermissionSet {
  if (own === undefined) return NO_PERMISSIONS;
  const rules: TenantRules = { own, global, builtinRoles };
  const { permissions } =
    principal.kind === 'api_key'
      ? ofKey(principal.grant, principal.owner?.roles, rules, counted)
      : { permissions: ofRoles(effectiveRoles(principal), rules, counted) };
  const { scope } = principal;
  return {
    platformAdmin: isPlatformAdmin(principal),
    permissions: scope === undefined ? permissions : overlap(permissions, limited([...scope.texts], [])),
  };
}

/** Returns the permissions of a user as a target. Its conditional allow policies count as well. */
export function permissionsOfUser(roles: readonly RoleName[], rules: TenantRules): PermissionSet {
  return { platformAdmin: roles.includes(ADMIN), permissions: ofRoles(roles, rules, 'all') };
}

/** Returns the permissions of a key as a target: its scopes, within the permissions of its owner. */
export function permissionsOfKey(
  grant: Grant,
  ownerRoles: readonly RoleName[] | undefined,
  rules: TenantRules,
): PermissionSet {
  return ofKey(grant, ownerRoles, rules, 'all');
}

/** Returns what an assignment of a role gives: the role's permissions, and all allow policies attached to it. */
export function permissionsOfRole(role: RoleName, { own, global, builtinRoles }: TenantRules): PermissionSet {
  const grant = builtinRoles.grantOf(role, own);
  const attached = (policy: CompiledPolicy) => policy.roles?.has(role) ?? false;
  const attachedToBuiltin = (policy: CompiledPolicy) => isBuiltinRole(role) && attached(policy);
  return {
    platformAdmin: role === ADMIN,
    permissions: [
      ...(grant === undefined ? [] : ofGrant(grant.patterns, grant.constraints)),
      ...ofPolicies(own.policies, attached, 'all'),
      ...ofPolicies(global, attachedToBuiltin, 'all'),
    ],
  };
}
