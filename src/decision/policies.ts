/** Policies, compiled and indexed by their actions, so that policies of other actions cost a request nothing. */

import type { PolicyName, RoleName } from '../domain/ids.ts';
import type { PolicyRecord } from '../domain/records.ts';
import { isBuiltinRole } from '../domain/roles.ts';
import { finish, type Steps } from '../domain/steps.ts';
import { compareTexts } from '../domain/text.ts';
import type { ConditionInputs } from './condition-table.ts';
import { type CompiledConditions, compileConditions, conditionsHold } from './conditions.ts';
import { compileNames, type NameSet, namesMatch } from './globs.ts';
import type { RuleWork } from './limits.ts';
import { type Permission, RESOURCE_KINDS, type Resource, type ResourceKind } from './model.ts';
import { compilePatterns, coversAny, isPermissionPattern, type PatternSet } from './permissions.ts';

/** Resource patterns of one policy: `*`, or `<kind>/<glob>`. */
interface ResourcePatterns {
  readonly all: boolean;
  readonly models: NameSet | undefined;
  readonly collections: NameSet | undefined;
  readonly agents: NameSet | undefined;
}

export interface CompiledPolicy {
  readonly name: PolicyName;
  readonly effect: 'allow' | 'deny';
  readonly actions: PatternSet;
  readonly resources: ResourcePatterns;
  readonly conditions: CompiledConditions;
  /** Undefined = everyone. */
  readonly roles: ReadonlySet<RoleName> | undefined;
  /** As stored, for escalation checks and explanations. */
  readonly record: PolicyRecord;
}

export interface PolicyLists {
  readonly denies: PolicyList;
  readonly allows: PolicyList;
}

/**
 * The policies in force of one tenant, or the global ones: by effect, each list by name. Disabled policies are not
 * included.
 */
export interface PolicySet extends PolicyLists {
  /** The report-only policies, which are not in force. Absent: none. */
  readonly reports?: PolicyLists;
}

export interface PolicyList {
  readonly policies: readonly CompiledPolicy[];
  /** Present if the list is long. */
  readonly index: PolicyIndex | undefined;
}

interface PolicyIndex {
  /** Positions in the list, by the text of an action; those of every permission under `*`. */
  readonly byAction: ReadonlyMap<string, readonly number[]>;
  /** The policies that were selected for the permissions of a route. */
  readonly picked: Map<string, readonly CompiledPolicy[]>;
}

/** The part of a request that policies are compared with. */
export interface PolicyQuery {
  readonly permissions: readonly Permission[];
  readonly resources: readonly Resource[];
  /** The roles of the user, or of the key's owner. */
  readonly roles: readonly RoleName[];
  /** True if the principal acts in its own tenant: the names of custom roles then mean its own. */
  readonly inOwnTenant: boolean;
  readonly now: ConditionInputs;
  readonly work: RuleWork;
}

/** Parses `<kind>/<glob>`; undefined for any other text. */
export function parseResourcePattern(text: string): { readonly kind: ResourceKind; readonly glob: string } | undefined {
  const slash = text.indexOf('/');
  const kind = RESOURCE_KINDS.find((known) => known === text.slice(0, Math.max(0, slash)));
  return kind === undefined || slash === text.length - 1 ? undefined : { kind, glob: text.slice(slash + 1) };
}

/** An unreadable pattern covers everything in a deny and nothing in an allow. */
function compileResources(patterns: readonly string[], effect: 'allow' | 'deny'): ResourcePatterns {
  let all = patterns.includes('*');
  const globs: Record<ResourceKind, string[]> = { models: [], collections: [], agents: [] };
  for (const text of patterns) {
    const pattern = parseResourcePattern(text);
    if (pattern !== undefined) globs[pattern.kind].push(pattern.glob);
    else if (effect === 'deny') all = true;
  }
  const oversized = effect === 'deny' ? 'widen' : 'leave out';
  const names = (list: readonly string[]) => (list.length === 0 ? undefined : compileNames(list, oversized));
  return { all, models: names(globs.models), collections: names(globs.collections), agents: names(globs.agents) };
}

export function compilePolicy(record: PolicyRecord): CompiledPolicy {
  const unreadable = record.effect === 'deny' && !record.actions.every(isPermissionPattern);
  return Object.freeze({
    name: record.name,
    effect: record.effect,
    actions: compilePatterns(unreadable ? ['*'] : record.actions),
    resources: compileResources(record.resources, record.effect),
    conditions: compileConditions(record.conditions),
    roles: record.appliesTo === 'everyone' ? undefined : new Set(record.attachedRoles),
    record,
  });
}

/** Shortest list that has an index. Shorter lists are tried one by one. */
const INDEXED_FROM = 16;
const MAX_PICKED = 256;

function* indexOf(policies: readonly CompiledPolicy[]): Steps<PolicyIndex> {
  const byAction = new Map<string, number[]>();
  for (const [position, policy] of policies.entries()) {
    yield;
    for (const text of policy.actions.all ? ['*'] : policy.actions.texts) byAction.getOrInsert(text, []).push(position);
  }
  return { byAction, picked: new Map() };
}

/** Like `policySetInSteps`, at once. */
export function policySet(inForce: readonly CompiledPolicy[], reports: readonly CompiledPolicy[] = []): PolicySet {
  return finish(policySetInSteps(inForce, reports));
}

/** Returns the denies, then the allows. */
export function listedPolicies(lists: PolicyLists | undefined): readonly CompiledPolicy[] {
  return lists === undefined ? [] : [...lists.denies.policies, ...lists.allows.policies];
}

/**
 * Returns a set of policies.
 * @param inForce the enabled policies of mode `enforce`
 * @param reports the enabled policies of mode `report`
 */
export function* policySetInSteps(
  inForce: readonly CompiledPolicy[],
  reports: readonly CompiledPolicy[],
): Steps<PolicySet> {
  const lists = yield* policyListsInSteps(inForce);
  return Object.freeze(reports.length === 0 ? lists : { ...lists, reports: yield* policyListsInSteps(reports) });
}

function* policyListsInSteps(policies: readonly CompiledPolicy[]): Steps<PolicyLists> {
  const of = (effect: CompiledPolicy['effect']) => policyListInSteps(policies.filter((one) => one.effect === effect));
  return { denies: yield* of('deny'), allows: yield* of('allow') };
}

/** Sorting is one step: the store delivers policies by name, and sorting a sorted list costs little. */
function* policyListInSteps(policies: readonly CompiledPolicy[]): Steps<PolicyList> {
  const sorted = policies.toSorted((left, right) => compareTexts(left.name, right.name));
  return { policies: sorted, index: sorted.length > INDEXED_FROM ? yield* indexOf(sorted) : undefined };
}

function pick(
  policies: readonly CompiledPolicy[],
  index: PolicyIndex,
  permissions: readonly Permission[],
): readonly CompiledPolicy[] {
  const positions = new Set(index.byAction.get('*'));
  for (const permission of permissions) {
    for (const text of [permission.text, permission.anyAction, permission.anyResource]) {
      for (const position of index.byAction.get(text) ?? []) positions.add(position);
    }
  }
  return policies.filter((_, position) => positions.has(position));
}

/** The policies of a list that may name one of the permissions, in the order of their names. */
function candidates(list: PolicyList, permissions: readonly Permission[]): readonly CompiledPolicy[] {
  const { policies, index } = list;
  if (index === undefined) return policies;
  const key =
    permissions.length === 1
      ? (permissions[0]?.text ?? '')
      : permissions.map((permission) => permission.text).join(' ');
  const known = index.picked.get(key);
  if (known !== undefined) return known;
  const picked = pick(policies, index, permissions);
  if (index.picked.size < MAX_PICKED) index.picked.set(key, picked);
  return picked;
}

/** The work of looking for one role among those that a policy is attached to. */
const ROLE_WORK = 2;

/** Whether the policy applies to the principal: to everyone, or to a role that it holds. */
export function policyAppliesTo(policy: CompiledPolicy, query: PolicyQuery): boolean {
  const { roles } = policy;
  if (roles === undefined) return true;
  query.work.left -= ROLE_WORK * query.roles.length;
  for (const role of query.roles) if (roles.has(role) && (query.inOwnTenant || isBuiltinRole(role))) return true;
  return false;
}

function patternReaches(
  patterns: ResourcePatterns,
  resource: Resource,
  effect: 'allow' | 'deny',
  work: RuleWork,
): boolean {
  const names = patterns[resource.kind];
  if (names === undefined) return false;
  // The request does not say which one it is: it may be the one that is denied, and need not be the one that is allowed.
  return resource.name === undefined ? effect === 'deny' : namesMatch(names, resource.name, work);
}

/** Up to this many resources are each looked up in a policy; of more, the fewer are looked up among the more. */
const FEW_RESOURCES = 4;

/** The names of a request by kind, and the kinds of which it does not name one. */
interface Requested {
  readonly resources: readonly Resource[];
  readonly names: ReadonlyMap<ResourceKind, ReadonlySet<string>>;
  readonly unknown: ReadonlySet<ResourceKind>;
}

/** The names of the last request, which one decision needs for each policy. The list of its resources never changes. */
let last: Requested | undefined;

function requestedIn(resources: readonly Resource[]): Requested {
  if (last?.resources === resources) return last;
  const names = new Map<ResourceKind, Set<string>>();
  const unknown = new Set<ResourceKind>();
  for (const { kind, name } of resources) {
    if (name === undefined) unknown.add(kind);
    else names.set(kind, (names.get(kind) ?? new Set()).add(name));
  }
  last = { resources, names, unknown };
  return last;
}

/**
 * Reports whether a deny matches one of many resources. If the deny has fewer exact names than the request, they are
 * looked up among the request's.
 */
function reachesSome(patterns: ResourcePatterns, resources: readonly Resource[], work: RuleWork): boolean {
  const { names, unknown } = requestedIn(resources);
  for (const kind of RESOURCE_KINDS) {
    const denied = patterns[kind];
    if (denied === undefined) continue;
    if (unknown.has(kind)) return true;
    const requested = names.get(kind);
    if (requested === undefined) continue;
    if (denied.prefixes.length === 0 && denied.globs.length === 0 && denied.exactNames.length < requested.size) {
      work.left -= denied.exactNames.length;
      if (work.left < 0) return false;
      for (const name of denied.exactNames) if (requested.has(name)) return true;
    } else {
      for (const name of requested) if (namesMatch(denied, name, work)) return true;
    }
  }
  return false;
}

/** A deny matches a request if it matches any of its resources, an allow if it matches all of them. */
export function reaches(policy: CompiledPolicy, resources: readonly Resource[], work: RuleWork): boolean {
  const { resources: patterns, effect } = policy;
  if (patterns.all) return true;
  const any = effect === 'deny';
  if (any && resources.length > FEW_RESOURCES) return reachesSome(patterns, resources, work);
  for (const resource of resources) if (patternReaches(patterns, resource, effect, work) === any) return any;
  return !any && resources.length > 0;
}

/** Reports whether a policy matches, apart from its conditions. */
export function concerns(policy: CompiledPolicy, query: PolicyQuery): boolean {
  return (
    coversAny(policy.actions, query.permissions) &&
    policyAppliesTo(policy, query) &&
    reaches(policy, query.resources, query.work)
  );
}

function matches(policy: CompiledPolicy, query: PolicyQuery): boolean {
  return concerns(policy, query) && conditionsHold(policy.conditions, policy.effect, query.now);
}

/** The work for one policy: its actions, its conditions and the access to its memory. */
const POLICY_WORK = 4;

function first(list: PolicyList, query: PolicyQuery): CompiledPolicy | undefined {
  for (const policy of candidates(list, query.permissions)) {
    query.work.left -= POLICY_WORK;
    if (query.work.left < 0) return undefined;
    if (matches(policy, query)) return policy;
  }
  return undefined;
}

/** Returns the first deny, by name, that matches; undefined = none, or the work is spent. */
export function denying(set: PolicyLists, query: PolicyQuery): CompiledPolicy | undefined {
  return first(set.denies, query);
}

/** Returns an allow that matches; undefined = none, or the work is spent. */
export function allowing(set: PolicyLists, query: PolicyQuery): CompiledPolicy | undefined {
  return first(set.allows, query);
}
