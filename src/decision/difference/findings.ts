/**
 * Rules that do nothing: a policy that equals another one, a permit whose requests are all denied, and a rule whose
 * requests other rules decide in the same way. Each finding holds for any principals, not only for those that the tenant
 * has now.
 *
 * A rule is compared with the rules that apply to every principal to which it applies: for each of its roles, the rules
 * of that role and of everyone.
 */

import { isBuiltinRole } from '../../domain/roles.ts';
import type { Steps } from '../../domain/steps.ts';
import { compareTexts } from '../../domain/text.ts';
import type { Snapshot } from '../model.ts';
import { ADMIN_TENANTS } from '../permissions.ts';
import type { RouteTable } from '../routes.ts';
import { BoundExceeded, ComparisonBudget } from './budget.ts';
import type { ManagementAccess, ResponsibleRule } from './model.ts';
import { type NameAxis, nameAxis } from './names.ts';
import type { Region, Space } from './regions.ts';
import {
  type ConditionAxes,
  conditionAxes,
  coversPermissions,
  type KindAxis,
  kindAxis,
  namesIn,
  type Rule,
  regionsOf,
  responsible,
  rulesOf,
  spaceOf,
} from './rules.ts';
import { type RequestShape, shapesOf } from './shapes.ts';

/**
 * `duplicate`: `by` is a policy with an earlier name that has the same effect, actions, resources, conditions and roles.
 * `shadowed`: the denies in `by` deny every request that the rule permits. `no_effect`: the rules in `by` decide every
 * request of the rule in the same way.
 */
export interface RuleFinding {
  readonly kind: 'duplicate' | 'shadowed' | 'no_effect';
  readonly rule: ResponsibleRule;
  readonly effect: 'allow' | 'deny';
  /** At most `MAX_NAMED`. */
  readonly by: readonly ResponsibleRule[];
}

const MAX_NAMED = 5;
/** The largest number of comparisons of two regions. */
const MAX_COMPARISONS = 300_000;
/** The largest number of places of globs that the steps between states of the automata visit. */
const MAX_PLACES = 400_000;

interface FindingsInput {
  /** With the tenant as `own` and as `effective`. */
  readonly snapshot: Snapshot;
  readonly routes: RouteTable;
  readonly management: readonly ManagementAccess[];
}

/** Finds rules that do nothing. @returns undefined if the rules are too many to compare them within the bounds */
export function* findingsInSteps(
  input: FindingsInput,
): Steps<{ readonly findings: readonly RuleFinding[] | undefined }> {
  const rules = yield* rulesOf(input.snapshot, input.snapshot);
  const duplicates = duplicatesIn(rules);
  const findings = [...duplicates.values()];
  try {
    const kept = rules.filter((rule) => !duplicates.has(rule));
    const shapes = yield* shapedRules(input, kept);
    for (const rule of kept) {
      yield;
      const finding = rule.kind === 'grant' && isBuiltinRole(rule.name) ? undefined : findingOf(rule, shapes);
      if (finding !== undefined) findings.push(finding);
    }
  } catch (error) {
    if (error instanceof BoundExceeded) return { findings: undefined };
    throw error;
  }
  return { findings };
}

/** Finds policies that equal an earlier one of the same owner. */
function duplicatesIn(rules: readonly Rule[]): ReadonlyMap<Rule, RuleFinding> {
  const first = new Map<string, Rule>();
  const found = new Map<Rule, RuleFinding>();
  const inOrder = rules.toSorted((a, b) => compareTexts(a.name, b.name));
  for (const rule of inOrder) {
    if (rule.kind === 'grant') continue;
    const { effect, actions, resources, conditions, appliesTo, attachedRoles } = rule.policy.record;
    const lists = [actions, resources, attachedRoles].map((list) => [...new Set<string>(list)].sort(compareTexts));
    const held = Object.entries(conditions).sort(([a], [b]) => compareTexts(a, b));
    const key = JSON.stringify([rule.ofTenant, effect, appliesTo, ...lists, held]);
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, rule);
    else found.set(rule, { kind: 'duplicate', rule: responsible(rule), effect, by: [responsible(earlier)] });
  }
  return found;
}

interface ShapedRules {
  readonly shape: RequestShape;
  readonly space: Space;
  readonly regions: ReadonlyMap<Rule, readonly Region[]>;
  readonly forEveryone: readonly Rule[];
  readonly byRole: ReadonlyMap<string, readonly Rule[]>;
}

function* shapedRules(input: FindingsInput, rules: readonly Rule[]): Steps<readonly ShapedRules[]> {
  const { snapshot, routes, management } = input;
  const policies = rules.flatMap((rule) => (rule.kind === 'grant' ? [] : [rule.policy]));
  const conditions = yield* conditionAxes(policies, snapshot.effective?.settings.timezone);
  const budget = new ComparisonBudget(MAX_COMPARISONS, MAX_PLACES);
  const known = new Map<string, NameAxis>();
  const shaped: ShapedRules[] = [];
  for (const shape of shapesOf({ before: snapshot, routes, management })) {
    const kinds: KindAxis[] = [];
    for (const one of shape.kinds) {
      const key = `${one.kind} ${one.form}`;
      const sets = rules.flatMap((rule) => namesIn(rule, one.kind).set ?? []);
      const names = known.get(key) ?? (yield* nameAxis(sets, undefined, one.form, budget));
      known.set(key, names);
      kinds.push(kindAxis(one, names));
    }
    shaped.push(yield* rulesOfShape(shape, kinds, conditions, rules, budget));
  }
  return shaped;
}

function* rulesOfShape(
  shape: RequestShape,
  kinds: readonly KindAxis[],
  conditions: ConditionAxes,
  rules: readonly Rule[],
  budget: ComparisonBudget,
): Steps<ShapedRules> {
  const regions = new Map<Rule, readonly Region[]>();
  const forEveryone: Rule[] = [];
  const byRole = new Map<string, Rule[]>();
  for (const rule of rules) {
    yield;
    if (!coversPermissions(rule, shape.permissions)) continue;
    regions.set(rule, regionsOf(rule, kinds, conditions));
    if (rule.roles === undefined) forEveryone.push(rule);
    for (const role of rule.roles ?? []) byRole.getOrInsert(role, []).push(rule);
  }
  return { shape, space: spaceOf(kinds, conditions, budget), regions, forEveryone, byRole };
}

/** Compares a rule, for each of its roles and each shape of requests, until a request shows that it matters. */
function findingOf(rule: Rule, shapes: readonly ShapedRules[]): RuleFinding | undefined {
  const denies = new Set<Rule>();
  const same = new Set<Rule>();
  let isShadowed = rule.kind !== 'deny';
  let matches = false;
  for (const role of rule.roles ?? [undefined]) {
    for (const shaped of shapes) {
      const regions = shaped.regions.get(rule) ?? [];
      if (regions.length === 0) continue;
      matches = true;
      const others = comparable(rule, role, shaped);
      const denying = others.filter(({ kind }) => kind === 'deny');
      const allowed = without(regions, denying, shaped, denies);
      if (allowed.length === 0) continue;
      isShadowed = false;
      if (rule.kind === 'deny') return undefined;
      const permitting = others.filter(({ kind }) => kind !== 'deny');
      if (without(allowed, permitting, shaped, same).length > 0) return undefined;
    }
  }
  if (!matches) return undefined;
  const by = [...denies, ...same].slice(0, MAX_NAMED).map(responsible);
  const effect = rule.kind === 'deny' ? 'deny' : 'allow';
  return { kind: isShadowed ? 'shadowed' : 'no_effect', rule: responsible(rule), effect, by };
}

/**
 * Returns the other rules that apply to every principal with the role. A policy of the tenant never counts for a global
 * one, and a rule counts only for principals that can use its permission.
 */
function comparable(
  rule: Rule,
  role: string | undefined,
  { shape, forEveryone, byRole }: ShapedRules,
): readonly Rule[] {
  const narrowed = shape.permissions.filter(({ text }) => text !== ADMIN_TENANTS);
  const isForAll = coversPermissions(rule, narrowed);
  const isGlobal = rule.kind !== 'grant' && !rule.ofTenant;
  const candidates = [...forEveryone, ...(role === undefined ? [] : (byRole.get(role) ?? []))];
  return candidates.filter(
    (other) =>
      other !== rule &&
      !(isGlobal && other.ofTenant) &&
      (other.kind === 'deny' || !isForAll || coversPermissions(other, narrowed)),
  );
}

/** Returns what is left of regions without those of rules, and collects the rules that take something. */
function without(
  regions: readonly Region[],
  rules: readonly Rule[],
  { space, regions: known }: ShapedRules,
  taking: Set<Rule>,
): readonly Region[] {
  let left = regions;
  for (const rule of rules) {
    if (left.length === 0) break;
    const next = space.without(left, known.get(rule) ?? []);
    if (next.length !== left.length || next.some((region, index) => region !== left[index])) taking.add(rule);
    left = next;
  }
  return left;
}
