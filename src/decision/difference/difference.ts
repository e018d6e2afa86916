/**
 * Computes the exact difference of two versions of a tenant's rules.
 *
 * The sets of requests that rules match are unions of regions (regions.ts) over axes that are cut at every constant of
 * both versions, so no rule distinguishes two requests of one class. With D and P for the requests that denies match
 * and that grants and allows permit, the requests that are allowed under one version and denied under the other are
 *
 *     P_from without D_from, within D_to or outside P_to
 *
 * Rules of both versions cancel out, except where a changed rule matches. So each region of the difference begins with
 * a changed rule: a deny that only the other version has, or a permit that only the first version has.
 *
 * The decision itself then decides one request of each region under both versions.
 */

import type { Steps } from '../../domain/steps.ts';
import { effectiveRoles } from '../builtin-roles.ts';
import { MAX_COLLECTIONS, MAX_RULE_WORK } from '../limits.ts';
import { type KeyPrincipal, type Principal, RESOURCE_KINDS, type ResourceKind, type Snapshot } from '../model.ts';
import { ADMIN_TENANTS } from '../permissions.ts';
import { isPlatformAdmin } from '../tenant.ts';
import { boxOf, describable, type ShapedRegion } from './boxes.ts';
import { BoundExceeded, ComparisonBudget } from './budget.ts';
import type { Box, Difference, DifferenceInput } from './model.ts';
import { type NameAxis, type NameForm, nameAxis, patternsOf } from './names.ts';
import { type Axis, type Region, regionKey, Space } from './regions.ts';
import {
  ConditionAxes,
  coversPermissions,
  grantRegion,
  isChanged,
  type KindAxis,
  namesIn,
  type Rule,
  regionsOf,
  responsible,
  rulesOf,
  type Side,
} from './rules.ts';
import { type RequestShape, shapesOf } from './shapes.ts';
import { findWitness } from './witness.ts';

export const MAX_BOXES = 200;
/** Most regions that are described and decided, of which the widest become boxes. */
const MAX_REGIONS = 2000;

const TOO_MANY_BOXES = `There are more than ${MAX_BOXES} boxes. Those that concern the most principals are shown.`;

/** Computes the difference in steps, so that other work can run between them. */
export function* differenceInSteps(input: DifferenceInput): Steps<Difference> {
  const computation = new Computation(input);
  return yield* computation.run();
}

/** Only steps 12 to 14 count, so a suspended tenant is compared like an active one. */
function active(snapshot: Snapshot): Snapshot {
  const tenant = snapshot.effective && { ...snapshot.effective, status: 'active' as const };
  return { ...snapshot, own: tenant, effective: tenant };
}

/** A rule in the requests of one shape. */
interface Entry {
  readonly rule: Rule;
  readonly regions: readonly Region[];
  /** True if it covers only a permission that platform administrators alone can use. */
  readonly forAdministrators: boolean;
}

/** The rules that apply to principals that decide alike, in the requests of one shape. */
interface PrincipalClass {
  readonly principal: Principal;
  readonly groups: number[];
}

type Direction = 'allowed' | 'denied';

class Computation {
  readonly #input: DifferenceInput;
  readonly #before: Snapshot;
  readonly #after: Snapshot;
  readonly #rules: readonly Rule[];
  readonly #budget = new ComparisonBudget();
  readonly #names = new Map<string, NameAxis>();
  readonly #regions = new Map<string, Map<number, readonly Region[]>>();
  readonly #found: Readonly<Record<Direction, Map<string, ShapedRegion & { readonly groups: number[] }>>>;
  readonly #reasons = new Set<string>();

  constructor(input: DifferenceInput) {
    this.#input = input;
    this.#before = active(input.before);
    this.#after = active(input.after);
    this.#rules = rulesOf(this.#before, this.#after);
    this.#found = { allowed: new Map(), denied: new Map() };
  }

  *run(): Steps<Difference> {
    const changed = this.#rules.filter(isChanged);
    const shapes = shapesOf(this.#input).filter(({ permissions }) =>
      changed.some((rule) => coversPermissions(rule, permissions)),
    );
    yield;
    if (shapes.length > 0) yield* this.#compare(shapes);
    const newlyAllowed = yield* this.#boxes('allowed');
    const newlyDenied = yield* this.#boxes('denied');
    return this.#result(newlyAllowed, newlyDenied);
  }

  *#compare(shapes: readonly RequestShape[]): Steps<void> {
    const relevant = this.#rules.filter((rule) => shapes.some((shape) => coversPermissions(rule, shape.permissions)));
    const policies = relevant.flatMap((rule) => (rule.kind === 'grant' ? [] : [rule.policy]));
    const conditions = new ConditionAxes(policies, this.#before.effective?.settings.timezone);
    try {
      for (const [index, shape] of shapes.entries()) {
        yield;
        const kinds = yield* this.#kindsOf(shape, shapes, relevant);
        yield* new ShapeComparison(this.#input, shape, kinds, conditions, relevant, this.#budget, this.#regions).run(
          (direction, one) => this.#add(direction, index, one),
          (reason) => this.#reasons.add(reason),
        );
      }
    } catch (error) {
      if (!(error instanceof BoundExceeded)) throw error;
      this.#reasons.add(error.message);
    }
  }

  *#kindsOf(
    shape: RequestShape,
    shapes: readonly RequestShape[],
    relevant: readonly Rule[],
  ): Steps<readonly KindAxis[]> {
    const axes: KindAxis[] = [];
    for (const { kind, form, many, named, unnamed } of shape.kinds) {
      const key = `${kind} ${form}`;
      let names = this.#names.get(key);
      if (names === undefined) {
        names = yield* this.#nameAxis(kind, form, shapes, relevant);
        this.#names.set(key, names);
      }
      const all = (named ? names.named : 0n) | (unnamed ? names.unnamed : 0n);
      axes.push({ kind, names, axis: { all, many } });
    }
    return axes;
  }

  *#nameAxis(
    kind: ResourceKind,
    form: NameForm,
    shapes: readonly RequestShape[],
    rules: readonly Rule[],
  ): Steps<NameAxis> {
    const sets = rules.map((rule) => namesIn(rule, kind).set).filter((set) => set !== undefined);
    const keys = this.#input.groups.flatMap(({ principal }) =>
      principal.kind === 'api_key' ? (principal.grant[kind] ?? []) : [],
    );
    // Where a request has further resources, names matter that no changed rule names.
    const isAlone = shapes.every(({ kinds }) => kinds.length < 2 || kinds.every((one) => one.kind !== kind));
    const isSingle = shapes.every(({ kinds }) => kinds.every((one) => one.kind !== kind || !one.many));
    const changed = rules.filter(isChanged).map((rule) => namesIn(rule, kind));
    const limits = isAlone && isSingle && changed.every(({ all, set }) => !all && set?.any !== true);
    const patterns = limits ? changed.flatMap(({ set }) => (set === undefined ? [] : patternsOf(set))) : undefined;
    return yield* nameAxis([...sets, ...new Set(keys)], patterns, form, this.#budget);
  }

  #add(direction: Direction, shape: number, one: ShapedRegion): void {
    const key = `${shape} ${one.by.kind} ${one.by.name} ${regionKey(one.region)}`;
    const found = this.#found[direction];
    const known = found.get(key);
    if (known !== undefined) known.groups.push(...one.groups);
    else if (found.size < MAX_REGIONS) found.set(key, { ...one, groups: [...one.groups] });
    else this.#reasons.add(TOO_MANY_BOXES);
  }

  /** Boxes of the widest regions first. */
  *#boxes(direction: Direction): Steps<readonly Box[]> {
    const { groups, routes, nowMs } = this.#input;
    const sizeOf = (one: ShapedRegion) => one.groups.reduce((sum, group) => sum + (groups[group]?.count ?? 0), 0);
    const sorted = [...this.#found[direction].values()]
      .map((one) => ({ one, size: sizeOf(one) }))
      .sort((a, b) => b.size - a.size);
    const boxes: Box[] = [];
    for (const part of sorted.flatMap(({ one }) => describable(one))) {
      yield;
      const principal = groups[part.groups[0] ?? 0]?.principal;
      if (principal === undefined) continue;
      const query = { ...part, principal, nowMs };
      const witness = findWitness(query, { before: this.#before, after: this.#after }, routes);
      if (witness === 'none') continue;
      if (witness === 'unknown') {
        const permission = part.shape.permissions[0]?.text ?? '';
        this.#reasons.add(`No request was found that shows a possible change of ${permission} by ${part.by.name}.`);
        continue;
      }
      if (boxes.length >= MAX_BOXES) {
        this.#reasons.add(TOO_MANY_BOXES);
        break;
      }
      boxes.push(boxOf(part, groups, this.#taken(part.shape), witness));
    }
    return boxes;
  }

  #taken({ permissions, management }: RequestShape): ReadonlySet<ResourceKind> {
    if (management) return new Set();
    const key = permissions.map(({ text }) => text).join(' ');
    const same = shapesOf(this.#input).filter(
      (shape) => !shape.management && shape.permissions.map(({ text }) => text).join(' ') === key,
    );
    return new Set(same.flatMap(({ kinds }) => kinds.map(({ kind }) => kind)));
  }

  #result(newlyAllowed: readonly Box[], newlyDenied: readonly Box[]): Difference {
    const affected = new Set([...newlyAllowed, ...newlyDenied].flatMap((box) => box.groups));
    const count = (kind: Principal['kind']) =>
      [...affected].reduce((sum, index) => {
        const group = this.#input.groups[index];
        return sum + (group?.principal.kind === kind ? group.count : 0);
      }, 0);
    const reasons = [...this.#reasons];
    const complete = reasons.length === 0;
    return {
      newlyAllowed,
      newlyDenied,
      complete,
      reason: complete ? undefined : reasons.join(' '),
      unchanged: complete && newlyAllowed.length + newlyDenied.length === 0,
      affected: { users: count('user'), keys: count('api_key') },
    };
  }
}

/** Compares both versions in the requests of one shape. */
class ShapeComparison {
  readonly #input: DifferenceInput;
  readonly #shape: RequestShape;
  readonly #kinds: readonly KindAxis[];
  readonly #conditions: ConditionAxes;
  readonly #space: Space;
  readonly #forEveryone: readonly Entry[];
  readonly #byRole = new Map<string, Entry[]>();
  readonly #changedRoles = new Set<string>();
  readonly #bases = new Map<string, readonly Region[]>();

  constructor(
    input: DifferenceInput,
    shape: RequestShape,
    kinds: readonly KindAxis[],
    conditions: ConditionAxes,
    rules: readonly Rule[],
    budget: ComparisonBudget,
    known: Map<string, Map<number, readonly Region[]>>,
  ) {
    this.#input = input;
    this.#shape = shape;
    this.#kinds = kinds;
    this.#conditions = conditions;
    const single = (all: bigint): Axis => ({ all, many: false });
    const { address, clocks } = conditions;
    this.#space = new Space(
      [...kinds.map(({ axis }) => axis), single(address.all), ...clocks.map(({ all }) => single(all))],
      budget,
    );
    const narrowed = shape.permissions.filter(({ text }) => text !== ADMIN_TENANTS);
    const key = kinds
      .map(({ kind, axis }, index) => `${kind} ${shape.kinds[index]?.form} ${axis.many} ${axis.all}`)
      .join();
    const regions = known.get(key) ?? new Map<number, readonly Region[]>();
    known.set(key, regions);
    const entries = rules
      .filter((rule) => coversPermissions(rule, shape.permissions))
      .map((rule): Entry => {
        const ofRule = regions.get(rule.id) ?? regionsOf(rule, kinds, conditions);
        regions.set(rule.id, ofRule);
        return { rule, regions: ofRule, forAdministrators: !coversPermissions(rule, narrowed) };
      })
      .filter((entry) => entry.regions.length > 0);
    this.#forEveryone = entries.filter(({ rule }) => rule.roles === undefined);
    for (const entry of entries) {
      for (const role of entry.rule.roles ?? []) {
        const known = this.#byRole.get(role);
        if (known === undefined) this.#byRole.set(role, [entry]);
        else known.push(entry);
        if (isChanged(entry.rule)) this.#changedRoles.add(role);
      }
    }
  }

  *run(add: (direction: Direction, one: ShapedRegion) => void, fail: (reason: string) => void): Steps<void> {
    for (const one of this.#classes()) {
      yield;
      if (this.#mayExceedWork(one.principal)) fail(this.#workReason());
      yield* this.#lost(one, 'before', (part) => add('denied', part));
      yield* this.#lost(one, 'after', (part) => add('allowed', part));
    }
  }

  /** Groups whose principals the rules of these requests treat alike, if a changed rule applies to them. */
  #classes(): Iterable<PrincipalClass> {
    const { permissions, management, self } = this.#shape;
    const asksAdmin = management || permissions.some(({ text }) => text === ADMIN_TENANTS);
    const changedForAll = this.#forEveryone.some(({ rule }) => isChanged(rule));
    const classes = new Map<string, PrincipalClass>();
    for (const [index, { principal }] of this.#input.groups.entries()) {
      if (self && principal.kind !== 'user') continue;
      const roles = effectiveRoles(principal).filter((role) => this.#byRole.has(role));
      if (!changedForAll && !roles.some((role) => this.#changedRoles.has(role))) continue;
      const scopes = principal.kind === 'user' ? '' : scopesKey(principal);
      const key = `${asksAdmin && isPlatformAdmin(principal)} ${roles.toSorted().join(' ')} ${scopes}`;
      const known = classes.get(key);
      if (known === undefined) classes.set(key, { principal, groups: [index] });
      else known.groups.push(index);
    }
    return classes.values();
  }

  #applies({ rule, forAdministrators }: Entry, principal: Principal): boolean {
    const isAdmin = isPlatformAdmin(principal);
    if (this.#shape.management && isAdmin && rule.ofTenant) return false;
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
    const needsNoGrant = this.#shape.self || (principal.kind === 'api_key' && principal.owner === undefined);
    const permits = (side: Side) =>
      needsNoGrant ? [this.#space.all] : regionsIn(of([...forEveryone, ...attached], side, false));
    const only = (side: Side, isDeny: boolean) =>
      of([...forEveryone, ...attached], side, isDeny).filter(({ rule }) => isChanged(rule));
    const space = this.#space;
    const emit = (entry: Entry, regions: readonly Region[]) => {
      for (const region of space.joined(regions))
        add({
          shape: this.#shape,
          kinds: this.#kinds,
          conditions: this.#conditions,
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
    const isExempt = this.#shape.management && isPlatformAdmin(principal);
    const key = `${rule.id} ${removed.map(({ side, isDeny }) => `${side} ${isDeny}`).join()} ${isExempt}`;
    let base = this.#bases.get(key);
    if (base === undefined) {
      const others = removed.flatMap(({ side, isDeny }) =>
        forEveryone.filter((one) => one.rule.sides.includes(side) && (one.rule.kind === 'deny') === isDeny),
      );
      // The regions of one rule may overlap.
      base = this.#space.without(this.#space.within([this.#space.all], regions), regionsIn(others));
      this.#bases.set(key, base);
    }
    return base;
  }

  /** The requests that a key's scopes cover; undefined if there are none. A user has no such bound. */
  #ceiling(principal: Principal): Region | undefined {
    if (principal.kind === 'user') return this.#space.all;
    const grantable = this.#shape.permissions.filter(({ text }) => text !== ADMIN_TENANTS);
    const covered = coversPermissions({ ...SCOPES, grant: principal.grant }, grantable);
    return covered ? grantRegion(principal.grant, this.#kinds, this.#conditions) : undefined;
  }

  /** Reports whether a decision for the principal may spend all of its work, so that it denies for that reason. */
  #mayExceedWork(principal: Principal): boolean {
    const roles = effectiveRoles(principal).length;
    const names = this.#kinds.reduce((sum, { axis }) => sum + (axis.many ? MAX_COLLECTIONS : 1), 0);
    const ofRule = ({ rule }: Entry): number => {
      const sets = RESOURCE_KINDS.flatMap((kind) => namesIn(rule, kind).set ?? []);
      const globs = sets.reduce(
        (sum, set) => sum + set.globs.reduce((all, glob) => all + 12 + glob.middle.length, 3),
        0,
      );
      return 4 + 2 * roles + names * globs;
    };
    const attached = this.#attached(principal);
    const own = principal.kind === 'api_key' ? ofRule({ ...NO_ENTRY, rule: { ...SCOPES, grant: principal.grant } }) : 0;
    return [...this.#forEveryone, ...attached].reduce((sum, entry) => sum + ofRule(entry), own) > MAX_RULE_WORK;
  }

  #workReason(): string {
    const permission = this.#shape.permissions[0]?.text ?? '';
    return `The rules for ${permission} are so many that a decision may end at its bound of work, and deny for that reason.`;
  }
}

const SCOPES = { id: -1, kind: 'grant', name: '' as never, sides: [], ofTenant: false, roles: undefined } as const;
const NO_ENTRY = { regions: [], forAdministrators: false } as const;

function regionsIn(entries: readonly Entry[]): readonly Region[] {
  return entries.flatMap(({ regions }) => regions);
}

function scopesKey({ grant, owner }: KeyPrincipal): string {
  const { models, collections, agents } = grant.constraints;
  return JSON.stringify([grant.patterns, models ?? null, collections ?? null, agents ?? null, owner === undefined]);
}
