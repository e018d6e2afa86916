/**
 * Computes the exact difference of two versions of a tenant's rules.
 *
 * The sets of requests that rules match are unions of regions (regions.ts) over axes that are cut at every constant of
 * both versions, so no rule distinguishes two requests of one class. The difference is a union of regions as well
 * (comparison.ts). If a bound ends the computation, the difference says so.
 *
 * The decision itself then decides one request of each region under both versions.
 */

import type { Steps } from '../../domain/steps.ts';
import type { Principal, ResourceKind, Snapshot } from '../model.ts';
import { boxOf, describable, roleSetsOf, type ShapedRegion } from './boxes.ts';
import { BoundExceeded, ComparisonBudget } from './budget.ts';
import { type Direction, ShapeComparison } from './comparison.ts';
import type { Box, Difference, DifferenceInput } from './model.ts';
import { type NameAxis, type NameForm, nameAxis, patternsOf } from './names.ts';
import { type Region, regionKey } from './regions.ts';
import {
  conditionAxes,
  coversPermissions,
  isChanged,
  type KindAxis,
  kindAxis,
  namesIn,
  type Rule,
  rulesOf,
} from './rules.ts';
import { type RequestShape, shapesOf } from './shapes.ts';
import { findWitness } from './witness.ts';

export const MAX_BOXES = 200;
/** The largest number of regions that are described and decided, of which the widest become boxes. */
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

class Computation {
  readonly #input: DifferenceInput;
  readonly #before: Snapshot;
  readonly #after: Snapshot;
  #rules: readonly Rule[] = [];
  readonly #budget = new ComparisonBudget();
  readonly #names = new Map<string, NameAxis>();
  readonly #regions = new Map<string, Map<number, readonly Region[]>>();
  readonly #found: Readonly<Record<Direction, Map<string, ShapedRegion & { readonly groups: number[] }>>>;
  readonly #reasons = new Set<string>();

  constructor(input: DifferenceInput) {
    this.#input = input;
    this.#before = active(input.before);
    this.#after = active(input.after);
    this.#found = { allowed: new Map(), denied: new Map() };
  }

  *run(): Steps<Difference> {
    this.#rules = yield* rulesOf(this.#before, this.#after);
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
    const conditions = yield* conditionAxes(policies, this.#before.effective?.settings.timezone);
    try {
      for (const [index, shape] of shapes.entries()) {
        yield;
        const kinds = yield* this.#kindsOf(shape, shapes, relevant);
        const comparison = new ShapeComparison({
          shape,
          kinds,
          conditions,
          groups: this.#input.groups,
          budget: this.#budget,
          known: this.#regions,
          add: (direction, one) => this.#add(direction, index, one),
          fail: (reason) => this.#reasons.add(reason),
        });
        yield* comparison.run(relevant);
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
    for (const one of shape.kinds) {
      const { kind, form } = one;
      const key = `${kind} ${form}`;
      let names = this.#names.get(key);
      if (names === undefined) {
        names = yield* this.#nameAxis(kind, form, shapes, relevant);
        this.#names.set(key, names);
      }
      const inPath = one.many && one.inPath !== undefined ? yield* names.namesOf(one.inPath) : undefined;
      axes.push({ ...kindAxis(one, names), inPath });
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
    const roleSets = yield* roleSetsOf(groups);
    const boxes: Box[] = [];
    for (const part of inTurn(sorted)) {
      yield;
      const group = groups[part.groups[0] ?? 0];
      if (group === undefined) continue;
      const { principal, expiresMs } = group;
      const query = { ...part, principal, expiresMs, nowMs };
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
      boxes.push(boxOf(part, groups, roleSets, this.#taken(part.shape), witness));
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
    const all = [...newlyAllowed, ...newlyDenied];
    const shown = new Set(all.toSorted((a, b) => b.users + b.keys - a.users - a.keys).slice(0, MAX_BOXES));
    if (shown.size < all.length) this.#reasons.add(TOO_MANY_BOXES);
    const affected = new Set(all.flatMap((box) => box.groups));
    const count = (kind: Principal['kind']) =>
      [...affected].reduce((sum, index) => {
        const group = this.#input.groups[index];
        return sum + (group?.principal.kind === kind ? group.count : 0);
      }, 0);
    const reasons = [...this.#reasons];
    const complete = reasons.length === 0;
    return {
      newlyAllowed: newlyAllowed.filter((box) => shown.has(box)),
      newlyDenied: newlyDenied.filter((box) => shown.has(box)),
      complete,
      reason: complete ? undefined : reasons.join(' '),
      unchanged: complete && all.length === 0,
      affected: { users: count('user'), keys: count('api_key') },
    };
  }
}

function* inTurn(regions: readonly { readonly one: ShapedRegion }[]): Generator<ShapedRegion> {
  for (const { one } of regions) yield* describable(one);
}
