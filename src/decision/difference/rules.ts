/**
 * The rules of both versions as one list, and the requests that each of them matches as regions. A rule that both
 * versions have in the same form is in both; a rule that changed is in the list twice.
 */

import type { PolicyName, RoleName } from '../../domain/ids.ts';
import type { Steps } from '../../domain/steps.ts';
import { isTimezone, spelledTimezone, WEEK_MINUTES } from '../clock.ts';
import {
  type Check,
  type CompiledConditions,
  conditionInputs,
  conditionsHold,
  type ReadableCheck,
} from '../conditions.ts';
import type { NameSet } from '../globs.ts';
import type { Grant } from '../grants.ts';
import type { Permission, ResourceKind, Snapshot, TenantView } from '../model.ts';
import { coversAny } from '../permissions.ts';
import { type CompiledPolicy, listedPolicies, type PolicySet } from '../policies.ts';
import type { ComparisonBudget } from './budget.ts';
import { AddressAxis, ClockAxis } from './lines.ts';
import type { ResponsibleRule } from './model.ts';
import type { NameAxis } from './names.ts';
import { type Axis, eachIn, type Region, type RegionPart, Space, someIn } from './regions.ts';
import type { ShapeKind } from './shapes.ts';

export type Side = 'before' | 'after';

interface Common {
  readonly id: number;
  readonly name: PolicyName | RoleName;
  readonly sides: readonly Side[];
  /** True for a policy of the tenant, which may not apply to platform administrators. */
  readonly ofTenant: boolean;
  /** Undefined: it applies to everyone. */
  readonly roles: ReadonlySet<string> | undefined;
}

interface PolicyRule extends Common {
  readonly kind: 'deny' | 'allow';
  readonly policy: CompiledPolicy;
}

interface GrantRule extends Common {
  readonly kind: 'grant';
  readonly grant: Grant;
}

export type Rule = PolicyRule | GrantRule;

/** The part of a rule, or of the scopes of a key, that names permissions and resources. */
export type RuleMatch = Pick<PolicyRule, 'kind' | 'policy'> | Pick<GrantRule, 'kind' | 'grant'>;

export function responsible({ kind, name }: Rule): ResponsibleRule {
  return { kind: kind === 'grant' ? 'role' : 'policy', name };
}

export function isChanged({ sides }: Rule): boolean {
  return sides.length === 1;
}

export function coversPermissions(rule: RuleMatch, permissions: readonly Permission[]): boolean {
  return coversAny(rule.kind === 'grant' ? rule.grant.permissions : rule.policy.actions, permissions);
}

/** Rules of one version by a name that is unique in it. */
type Named<T> = ReadonlyMap<string, T>;

/** Pairs the rules of both versions by their names. */
function* paired<T>(
  before: Named<T>,
  after: Named<T>,
  isSame: (one: T, other: T) => boolean,
  add: (rule: T, sides: readonly Side[]) => void,
): Steps<void> {
  for (const [name, rule] of before) {
    yield;
    const other = after.get(name);
    add(rule, other !== undefined && isSame(rule, other) ? ['before', 'after'] : ['before']);
  }
  for (const [name, rule] of after) {
    const other = before.get(name);
    if (other === undefined || !isSame(other, rule)) add(rule, ['after']);
  }
}

function policiesOf(set: PolicySet): Named<CompiledPolicy> {
  return new Map(listedPolicies(set).map((policy) => [policy.name, policy]));
}

function grantsOf(snapshot: Snapshot, own: TenantView | undefined): Named<readonly [RoleName, Grant]> {
  const builtin = snapshot.builtinRoles.list.map((role) => role.name);
  const names = [...builtin, ...(own?.roles.keys() ?? [])];
  return new Map(
    names.flatMap((name) => {
      const grant = own && snapshot.builtinRoles.grantOf(name, own);
      return grant === undefined ? [] : [[name, [name, grant] as const] as const];
    }),
  );
}

function isSamePolicy(one: CompiledPolicy, other: CompiledPolicy): boolean {
  return one === other || JSON.stringify(one.record) === JSON.stringify(other.record);
}

function isSameGrant([, one]: readonly [RoleName, Grant], [, other]: readonly [RoleName, Grant]): boolean {
  const textOf = ({ patterns, constraints: { models, collections, agents } }: Grant) =>
    JSON.stringify([patterns, models ?? null, collections ?? null, agents ?? null]);
  return one === other || textOf(one) === textOf(other);
}

/** Returns all rules of both versions: policies by name, global ones first, as a denial names them, then grants. */
export function* rulesOf(before: Snapshot, after: Snapshot): Steps<readonly Rule[]> {
  const rules: Rule[] = [];
  const addPolicy = (ofTenant: boolean) => (policy: CompiledPolicy, sides: readonly Side[]) => {
    const { name, effect: kind, roles } = policy;
    rules.push({ id: rules.length, kind, name, sides, ofTenant, roles, policy });
  };
  const ofTenant = (side: Snapshot) => side.effective?.policies ?? { denies: NO_LIST, allows: NO_LIST };
  yield* paired(policiesOf(before.global), policiesOf(after.global), isSamePolicy, addPolicy(false));
  yield* paired(policiesOf(ofTenant(before)), policiesOf(ofTenant(after)), isSamePolicy, addPolicy(true));
  yield* paired(grantsOf(before, before.own), grantsOf(after, after.own), isSameGrant, ([name, grant], sides) =>
    rules.push({ id: rules.length, kind: 'grant', name, sides, ofTenant: false, roles: new Set([name]), grant }),
  );
  return rules;
}

const NO_LIST = { policies: [], index: undefined };

/** The conditions of a policy: those on the address, and those on a clock. */
interface SplitConditions {
  readonly address: readonly Check[];
  readonly clock: readonly Check[];
  readonly timezone: string;
}

function splitConditions({ checks, timezone }: CompiledConditions, tenantZone: string | undefined): SplitConditions {
  const usesClock = (check: Check) => check.kind === 'readable' && check.condition.usesClock;
  return {
    address: checks.filter((check) => !usesClock(check)),
    clock: checks.filter(usesClock),
    timezone: timezone ?? spelledTimezone(tenantZone ?? 'UTC'),
  };
}

/** Monday 00:00 UTC of some week, in milliseconds since the epoch. */
const MONDAY_MS = 4 * 24 * 60 * 60 * 1000;
const MINUTE_MS = 60_000;

/** The axes that do not depend on the resources of a request, and the sets of the conditions on them. */
export class ConditionAxes {
  readonly address: AddressAxis;
  /** One for each time zone in which a policy has conditions. */
  readonly clocks: readonly ClockAxis[];
  readonly #tenantZone: string | undefined;
  readonly #known = new Map<string, bigint>();

  constructor(addresses: Iterable<bigint>, clocks: readonly ClockAxis[], tenantZone: string | undefined) {
    this.address = new AddressAxis(addresses);
    this.clocks = clocks;
    this.#tenantZone = tenantZone;
  }

  /** Returns the parts of a policy on the address and on each clock; undefined if its conditions never hold. */
  partsOf({ conditions, effect }: CompiledPolicy): readonly RegionPart[] | undefined {
    const { address, clock, timezone } = splitConditions(conditions, this.#tenantZone);
    const addresses = this.#maskOf(address, `${effect} `, () =>
      this.address.maskWhere((text) =>
        conditionsHold({ checks: address, timezone: undefined }, effect, conditionInputs(0, text, undefined)),
      ),
    );
    const clocks = this.clocks.map((axis) =>
      axis.timezone !== timezone || clock.length === 0
        ? axis.all
        : this.#maskOf(clock, `${effect} ${timezone}`, () =>
            axis.maskWhere((minute) => {
              const nowMs = MONDAY_MS + (minute % WEEK_MINUTES) * MINUTE_MS;
              return conditionsHold({ checks: clock, timezone: 'UTC' }, effect, conditionInputs(nowMs, '', 'UTC'));
            }),
          ),
    );
    // A clock that no process can read counts as missing.
    const never = effect === 'allow' && clock.length > 0 && !isTimezone(timezone);
    const masks = [addresses, ...clocks];
    return never || masks.includes(0n) ? undefined : masks.map(eachIn);
  }

  #maskOf(checks: readonly Check[], prefix: string, compute: () => bigint): bigint {
    const readable = checks.filter((check): check is ReadableCheck => check.kind === 'readable');
    const parts = readable.map(({ key, operator, operand }) => [key, operator, operand]);
    const key = `${prefix}${readable.length < checks.length} ${JSON.stringify(parts)}`;
    return this.#known.getOrInsertComputed(key, compute);
  }
}

/** Builds the axes from all constants in the conditions of policies. */
export function* conditionAxes(
  policies: readonly CompiledPolicy[],
  tenantZone: string | undefined,
): Steps<ConditionAxes> {
  const addresses = new Set<bigint>();
  const minutes = new Map<string, Set<bigint>>();
  const seen = new Set<string>();
  for (const { conditions } of policies) {
    yield;
    const { timezone } = splitConditions(conditions, tenantZone);
    for (const check of conditions.checks) {
      if (check.kind === 'unreadable' || (check.condition.usesClock && !isTimezone(timezone))) continue;
      const key = JSON.stringify([check.key, check.operand, check.condition.usesClock && timezone]);
      if (seen.has(key)) continue;
      seen.add(key);
      const into = check.condition.usesClock ? minutes.getOrInsertComputed(timezone, () => new Set()) : addresses;
      for (const border of check.condition.borders(check.operand)) into.add(border);
    }
  }
  const clocks = [...minutes].map(([timezone, borders]) => new ClockAxis(timezone, borders));
  return new ConditionAxes(addresses, clocks, tenantZone);
}

/** The axis of one kind of resource in the requests of one shape. */
export interface KindAxis {
  readonly kind: ResourceKind;
  readonly names: NameAxis;
  readonly axis: Axis;
  /** If every request has one of several resources in its path: a name for the path of each class that has one. */
  readonly inPath?: readonly string[] | undefined;
}

export function kindAxis({ kind, many, named, unnamed }: ShapeKind, names: NameAxis): KindAxis {
  const all = (named ? names.named : 0n) | (unnamed ? names.unnamed : 0n);
  return { kind, names, axis: { all, many } };
}

/** Returns the space of the requests of one shape. */
export function spaceOf(
  kinds: readonly KindAxis[],
  { address, clocks }: ConditionAxes,
  budget: ComparisonBudget,
): Space {
  const single = ({ all }: { readonly all: bigint }): Axis => ({ all, many: false });
  return new Space([...kinds.map(({ axis }) => axis), single(address), ...clocks.map(single)], budget);
}

/** Returns the requests that a rule matches, by their resources and conditions. */
export function regionsOf(rule: Rule, kinds: readonly KindAxis[], conditions: ConditionAxes): readonly Region[] {
  if (rule.kind === 'grant') {
    const parts = grantParts(rule.grant, kinds);
    return parts === undefined ? [] : [[...parts, ...everyCondition(conditions)]];
  }
  const held = conditions.partsOf(rule.policy);
  if (held === undefined) return [];
  return resourceParts(rule.policy, kinds).map((parts) => [...parts, ...held]);
}

function everyCondition({ address, clocks }: ConditionAxes): readonly RegionPart[] {
  return [eachIn(address.all), ...clocks.map(({ all }) => eachIn(all))];
}

/** Returns the requests that a key's scopes cover; undefined if there are none. */
export function grantRegion(grant: Grant, kinds: readonly KindAxis[], conditions: ConditionAxes): Region | undefined {
  const parts = grantParts(grant, kinds);
  return parts && [...parts, ...everyCondition(conditions)];
}

/** A kind that a grant does not constrain, or constrains to `*`, may be unnamed. */
function grantParts(grant: Grant, kinds: readonly KindAxis[]): readonly RegionPart[] | undefined {
  const parts: RegionPart[] = [];
  for (const { kind, names, axis } of kinds) {
    const set = grant[kind];
    const mask = set === undefined || set.any ? axis.all : names.maskOf(set) & axis.all;
    if (mask === 0n) return undefined;
    parts.push(eachIn(mask));
  }
  return parts;
}

/** A deny has one region for each kind of its resources, because one resource of the request is enough. */
function resourceParts(
  { resources, effect }: CompiledPolicy,
  kinds: readonly KindAxis[],
): readonly (readonly RegionPart[])[] {
  const all = kinds.map(({ axis }) => eachIn(axis.all));
  if (resources.all) return [all];
  const masks = kinds.map(({ kind, names, axis }) => {
    const set = resources[kind];
    if (set === undefined) return 0n;
    return (names.maskOf(set) | (effect === 'deny' ? names.unnamed : 0n)) & axis.all;
  });
  if (effect === 'allow') return kinds.length === 0 || masks.includes(0n) ? [] : [masks.map(eachIn)];
  return kinds.flatMap(({ axis }, index) => {
    const mask = masks[index] ?? 0n;
    return mask === 0n ? [] : [all.with(index, someIn(axis, mask))];
  });
}

/** The names of one kind that a rule distinguishes. `all`: it matches every name of the kind. */
interface RuleNames {
  readonly all: boolean;
  readonly set: NameSet | undefined;
}

export function namesIn(rule: RuleMatch, kind: ResourceKind): RuleNames {
  if (rule.kind !== 'grant') return { all: rule.policy.resources.all, set: rule.policy.resources[kind] };
  return { all: rule.grant[kind] === undefined, set: rule.grant[kind] };
}
