/**
 * Compares two versions of the rules in the requests of one shape.
 *
 * With D and P for the requests that denies match and that grants and allows permit, the requests that are allowed under
 * one version and denied under the other are
 *
 *     P_from without D_from, within D_to or outside P_to
 *
 * Rules of both versions cancel out, except where a changed rule matches. So each region of the difference begins with
 * a changed rule: a deny that only the other version has, or a permit that only the first version has.
 */

import type { Steps } from '../../domain/steps.ts';
import { effectiveRoles } from '../builtin-roles.ts';
import { MAX_COLLECTIONS, MAX_RULE_WORK } from '../limits.ts';
import { type KeyPrincipal, type Principal, RESOURCE_KINDS } from '../model.ts';
import { ADMIN_TENANTS } from '../permissions.ts';
import { isPlatformAdmin } from '../tenant.ts';
import type { ShapedRegion } from './boxes.ts';
import type { ComparisonBudget } from './budget.ts';
import type { PrincipalGroup } from './model.ts';
import type { Region, Space } from './regions.ts';
import {
  type ConditionAxes,
  coversPermissions,
  grantRegion,
  isChanged,
  type KindAxis,
  namesIn,
  type Rule,
  type RuleMatch,
  regionsOf,
  responsible,
  type Side,
  spaceOf,
} from './rules.ts';
import type { RequestShape } from './shapes.ts';

export type Direction = 'allowed' | 'denied';

interface ComparisonParts {
  readonly shape: RequestShape;
  readonly kinds: readonly KindAxis[];
  readonly conditions: ConditionAxes;
  readonly groups: readonly PrincipalGroup[];
  readonly budget: ComparisonBudget;
  /** The regions of rules that earlier comparisons computed, by the axes of the kinds. */
  readonly known: Map<string, Map<number, readonly Region[]>>;
  readonly add: (direction: Direction, one: ShapedRegion) => void;
  /** Called with the reason if the comparison cannot be exact. */
  readonly fail: (reason: string) => void;
}

/** A rule in the requests of one shape. */
interface Entry {
  readonly rule: Rule;
  /** Empty if it matches none of these requests. */
  readonly regions: readonly Region[];
  /** The largest cost of a decision about one of its requests, in the unit of `MAX_RULE_WORK`. */
  readonly work: number;
  /** True if it covers only a permission that platform administrators alone can use. */
  readonly forAdministrators: boolean;
}

/** Groups to whose principals the same rules apply in the requests of one shape. */
interface PrincipalClass {
  readonly principal: Principal;
  readonly groups: number[];
}

/** Compares both versions in the requests of one shape. */
export class ShapeComparison {
  readonly #parts: ComparisonParts;
  readonly #space: Space;
  readonly #forEveryone: Entry[] = [];
  readonly #byRole = new Map<string, Entry[]>();
  readonly #changedRoles = new Set<string>();
  readonly #bases = new Map<string, readonly Region[]>();
  #policyCount = 0;

  constructor(parts: ComparisonParts) {
    this.#parts = parts;
    this.#space = spaceOf(parts.kinds, parts.conditions, parts.budget);
  }

  /** @throws BoundExceeded */
  *run(rules: readonly Rule[]): Steps<void> {
    const { shape, add, fail } = this.#parts;
    yield* this.#index(rules);
    for (const one of yield* this.#classes()) {
      yield;
      if (this.#mayExceedWork(one.principal)) fail(workReason(shape));
      yield* this.#lost(one, 'before', (part) => add('denied', part));
      yield* this.#lost(one, 'after', (part) => add('allowed', part));
    }
  }

  *#index(rules: readonly Rule[]): Steps<void> {
    const { shape, kinds, conditions, known } = this.#parts;
    const narrowed = shape.permissions.filter(({ text }) => text !== ADMIN_TENANTS);
    const key = kinds.map(({ kind, axis }, i) => `${kind} ${shape.kinds[i]?.form} ${axis.many} ${axis.all}`).join();
    const regions = known.getOrInsertComputed(key, () => new Map());
    const nameCount = kinds.reduce((sum, { axis }) => sum + (axis.many ? MAX_COLLECTIONS : 1), 0);
    for (const rule of rules) {
      yield;
      if (!coversPermissions(rule, shape.permissions)) continue;
      if (rule.kind !== 'grant') this.#policyCount++;
      const ofRule = regions.getOrInsertComputed(rule.id, () => regionsOf(rule, kinds, conditions));
      const work = workOf(rule, nameCount);
      const entry: Entry = { rule, regions: ofRule, work, forAdministrators: !coversPermissions(rule, narrowed) };
      if (rule.roles === undefined) this.#forEveryone.push(entry);
      for (const role of rule.roles ?? []) {
        this.#byRole.getOrInsert(role, []).push(entry);
        if (isChanged(rule)) this.#changedRoles.add(role);
      }
    }
  }

  /** Groups whose principals the rules of these requests treat alike, if a changed rule applies to them. */
  *#classes(): Steps<Iterable<PrincipalClass>> {
    const { permissions, management, self } = this.#parts.shape;
    const asksAdmin = management || permissions.some(({ text }) => text === ADMIN_TENANTS);
    const changedForAll = this.#forEveryone.some(({ rule }) => isChanged(rule));
    const classes = new Map<string, PrincipalClass>();
    for (const [index, { principal }] of this.#parts.groups.entries()) {
      yield;
      if (self && principal.kind !== 'user') continue;
      const roles = effectiveRoles(principal).filter((role) => this.#byRole.has(role));
      if (!changedForAll && !roles.some((role) => this.#changedRoles.has(role))) continue;
      const scopes = principal.kind === 'user' ? '' : scopesKey(principal);
      const key = `${asksAdmin && isPlatformAdmin(principal)} ${roles.toSorted().join(' ')} ${scopes}`;
      classes.getOrInsert(key, { principal, groups: [] }).groups.push(index);
    }
    return classes.values();
  }

  #applies({ rule, forAdministrators }: Entry, principal: Principal): boolean {
    const isAdmin = isPlatformAdmin(principal);
    if (this.#parts.shape.management && isAdmin && rule.ofTenant) return false;
    return rule.kind === 'deny' || isAdmin || !forAdministrators;
  }

  #attached(principal: Principal): readonly Entry[] {
    const entries = new Set(effectiveRoles(principal).flatMap((role) => this.#byRole.get(role) ?? []));
    return [...entries].filter((entry) => this.#applies(entry, principal)).sort((a, b) => a.rule.id - b.rule.id);
  }

  /** Finds the requests that are allowed in one version and denied in the other. */
  *#lost({ principal, groups }: PrincipalClass, from: Side, add: (one: ShapedRegion) => void): Steps<void> {
    const ceiling = this.#ceiling(principal);
    if (ceiling === undefined) return;
    const to = from === 'before' ? 'after' : 'before';
    const attached = this.#attached(principal);
    const forEveryone = this.#forEveryone.filter((entry) => this.#applies(entry, principal));
    const of = (entries: readonly Entry[], side: Side, isDeny: boolean) =>
      entries.filter(({ rule }) => rule.sides.includes(side) && (rule.kind === 'deny') === isDeny);
    const needsNoGrant = this.#parts.shape.self || (principal.kind === 'api_key' && principal.owner === undefined);
    const permits = (side: Side) =>
      needsNoGrant ? [this.#space.all] : regionsIn(of([...forEveryone, ...attached], side, false));
    const only = (side: Side, isDeny: boolean) =>
      of([...forEveryone, ...attached], side, isDeny).filter(({ rule }) => isChanged(rule));
    const space = this.#space;
    const emit = (entry: Entry, regions: readonly Region[]) => {
      for (const region of space.joined(regions))
        add({
          shape: this.#parts.shape,
          kinds: this.#parts.kinds,
          conditions: this.#parts.conditions,
          region,
          by: responsible(entry.rule),
          groups,
        });
    };

    const earlier: Region[] = [];
    for (const entry of only(to, true)) {
      yield;
      let left = space.within(this.#base(entry, principal, forEveryone, [{ side: from, isDeny: true }]), [ceiling]);
      left = space.without(left, regionsIn(of(attached, from, true)));
      left = space.without(left, earlier);
      emit(entry, space.within(left, permits(from)));
      earlier.push(...entry.regions);
    }
    if (needsNoGrant) return;
    earlier.length = 0;
    for (const entry of only(from, false)) {
      yield;
      const removed = [
        { side: from, isDeny: true },
        { side: to, isDeny: true },
        { side: to, isDeny: false },
      ] as const;
      let left = space.within(this.#base(entry, principal, forEveryone, removed), [ceiling]);
      for (const { side, isDeny } of removed) left = space.without(left, regionsIn(of(attached, side, isDeny)));
      emit(entry, space.without(left, earlier));
      earlier.push(...entry.regions);
    }
  }

  /** Returns a changed rule's regions without the rules that apply to everyone: the same for all classes of principals. */
  #base(
    { rule, regions }: Entry,
    principal: Principal,
    forEveryone: readonly Entry[],
    removed: readonly { readonly side: Side; readonly isDeny: boolean }[],
  ): readonly Region[] {
    // A platform administrator has other rules that apply to everyone than the other principals (`#applies`).
    const key = `${rule.id} ${removed.map(({ side, isDeny }) => `${side} ${isDeny}`).join()} ${isPlatformAdmin(principal)}`;
    return this.#bases.getOrInsertComputed(key, () => {
      const others = removed.flatMap(({ side, isDeny }) =>
        forEveryone.filter((one) => one.rule.sides.includes(side) && (one.rule.kind === 'deny') === isDeny),
      );
      // The regions of one rule may overlap.
      return this.#space.without(this.#space.within([this.#space.all], regions), regionsIn(others));
    });
  }

  /** The requests that a key's scopes cover; undefined if there are none. A user has no such bound. */
  #ceiling(principal: Principal): Region | undefined {
    if (principal.kind === 'user') return this.#space.all;
    const grantable = this.#parts.shape.permissions.filter(({ text }) => text !== ADMIN_TENANTS);
    const covered = coversPermissions({ kind: 'grant', grant: principal.grant }, grantable);
    return covered ? grantRegion(principal.grant, this.#parts.kinds, this.#parts.conditions) : undefined;
  }

  /** Reports whether a decision for the principal may spend all of its work, so that it denies for that reason. */
  #mayExceedWork(principal: Principal): boolean {
    const names = this.#parts.kinds.reduce((sum, { axis }) => sum + (axis.many ? MAX_COLLECTIONS : 1), 0);
    const scopes = principal.kind === 'api_key' ? workOf({ kind: 'grant', grant: principal.grant }, names) : 0;
    const roles = effectiveRoles(principal).length;
    const entries = [...this.#forEveryone, ...this.#attached(principal)];
    const lookups = ROLE_WORK * roles * this.#policyCount;
    return entries.reduce((sum, { work }) => sum + work, scopes + lookups) > MAX_RULE_WORK;
  }
}

/** Upper bounds of the work of a decision on one rule, in the units of `MAX_RULE_WORK`. */
const RULE_WORK = 4;
const ROLE_WORK = 2;
const LIST_WORK = 3;
const GLOB_WORK = 12;

function workOf(rule: RuleMatch, names: number): number {
  const sets = RESOURCE_KINDS.flatMap((kind) => namesIn(rule, kind).set ?? []);
  const ofName = sets.reduce(
    (sum, set) => set.globs.reduce((all, glob) => all + GLOB_WORK + glob.middle.length, sum + LIST_WORK),
    0,
  );
  return RULE_WORK + names * ofName;
}

function workReason({ permissions }: RequestShape): string {
  return `The rules for ${permissions[0]?.text ?? ''} are so many that a decision may end at its bound of work, and deny for that reason.`;
}

function regionsIn(entries: readonly Entry[]): readonly Region[] {
  return entries.flatMap(({ regions }) => regions);
}

function scopesKey({ grant, owner }: KeyPrincipal): string {
  const { models, collections, agents } = grant.constraints;
  return JSON.stringify([grant.patterns, models ?? null, collections ?? null, agents ?? null, owner === undefined]);
}
