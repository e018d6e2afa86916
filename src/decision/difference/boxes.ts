/** Boxes: regions of requests with the principals that they concern, described by the texts of the rules. */

import type { RoleName } from '../../domain/ids.ts';
import type { Steps } from '../../domain/steps.ts';
import { parseAddress } from '../address.ts';
import { effectiveRoles } from '../builtin-roles.ts';
import { minuteOfWeek } from '../clock.ts';
import { type Principal, RESOURCE_KINDS, type ResourceKind } from '../model.ts';
import type {
  Box,
  BoxRequest,
  ClockRegion,
  NameRegion,
  PrincipalGroup,
  ResourceRegion,
  ResponsibleRule,
  RoleRegion,
  Witness,
} from './model.ts';
import type { NameAxis } from './names.ts';
import { eachIn, type Region, type RegionPart } from './regions.ts';
import type { ConditionAxes, KindAxis } from './rules.ts';
import type { RequestShape } from './shapes.ts';

/** A region of requests of one shape, and the groups whose requests in it change their outcome. */
export interface ShapedRegion {
  readonly shape: RequestShape;
  readonly kinds: readonly KindAxis[];
  readonly conditions: ConditionAxes;
  readonly region: Region;
  readonly by: ResponsibleRule;
  readonly groups: readonly number[];
}

/**
 * Splits a region so that one set of patterns describes the names of each kind. Where a request may have several
 * resources of a kind, the names stay together.
 */
export function describable(one: ShapedRegion): readonly ShapedRegion[] {
  let regions: readonly Region[] = [one.region];
  for (const [index, { names, axis }] of one.kinds.entries()) {
    if (axis.many) continue;
    regions = regions.flatMap((region) => {
      const mask = region[index]?.each ?? 0n;
      const sets = names.describe(mask).map((set) => set.mask);
      if (sets.length < 2) return [region];
      return sets.map((set, at) => region.with(index, eachIn(at === 0 ? set | (mask & names.unnamed) : set)));
    });
  }
  return regions.map((region) => ({ ...one, region }));
}

function nameRegion(names: NameAxis, mask: bigint): NameRegion {
  const sets = names.describe(mask).map(({ patterns, except, also }) => ({ patterns, except, also }));
  return { sets, unnamed: (mask & names.unnamed) !== 0n };
}

function resourceRegion({ names }: KindAxis, { each, some }: RegionPart): ResourceRegion {
  return { each: nameRegion(names, each), some: some.map((mask) => nameRegion(names, mask)) };
}

/** @param taken the kinds that routes with the same permissions take */
export function boxOf(
  { shape, kinds, conditions, region, by, groups }: ShapedRegion,
  all: readonly PrincipalGroup[],
  roleSets: RoleSets,
  taken: ReadonlySet<ResourceKind>,
  witness: Witness,
): Box {
  const members = groups.flatMap((group) => all[group] ?? []);
  const count = (kind: 'user' | 'api_key') =>
    members.reduce((sum, one) => sum + (one.principal.kind === kind ? one.count : 0), 0);
  const resources: Partial<Record<ResourceKind, ResourceRegion | 'none'>> = {};
  for (const kind of RESOURCE_KINDS) if (taken.has(kind)) resources[kind] = 'none';
  for (const [index, axis] of kinds.entries()) {
    const part = region[index];
    if (part !== undefined) resources[axis.kind] = resourceRegion(axis, part);
  }
  const clockParts = region.slice(kinds.length + 1);
  const clocks: ClockRegion[] = conditions.clocks.flatMap((axis, index) => {
    const mask = clockParts[index]?.each ?? axis.all;
    return mask === axis.all ? [] : [{ timezone: axis.timezone, week: axis.describe(mask) }];
  });
  const permissions = shape.permissions.map(({ text }) => text);
  const inGroup = new Set(groups);
  return {
    groups,
    users: count('user'),
    keys: count('api_key'),
    roles: roleSets.describe(inGroup),
    permissions,
    management: shape.management,
    self: shape.self,
    resources,
    addresses: conditions.address.describe(region[kinds.length]?.each ?? conditions.address.all),
    clocks,
    by,
    witness,
    contains: (request) =>
      inGroup.has(request.group) &&
      request.management === shape.management &&
      request.self === shape.self &&
      request.permissions.join(' ') === permissions.join(' ') &&
      hasResources(kinds, region, request) &&
      hasConditions(conditions, region.slice(kinds.length), request),
    mayName: (kind, name) => {
      const index = kinds.findIndex((one) => one.kind === kind);
      const mask = kinds[index]?.names.classOf(name) ?? 0n;
      return ((region[index]?.each ?? 0n) & mask) !== 0n;
    },
  };
}

function hasResources(kinds: readonly KindAxis[], region: Region, { resources }: BoxRequest): boolean {
  if (resources.some(({ kind }) => !kinds.some((one) => one.kind === kind))) return false;
  return kinds.every(({ kind, names }, index) => {
    const found = resources.filter((one) => one.kind === kind).map(({ name }) => names.classOf(name));
    const part = region[index];
    if (part === undefined || found.length === 0) return false;
    const isIn = (mask: bigint) => (one: bigint) => (one & mask) !== 0n;
    return found.every(isIn(part.each)) && part.some.every((mask) => found.some(isIn(mask)));
  });
}

function hasConditions(
  { address, clocks }: ConditionAxes,
  parts: readonly RegionPart[],
  { clientAddress, timeMs }: BoxRequest,
): boolean {
  const parsed = clientAddress === undefined ? undefined : parseAddress(clientAddress);
  const masks = [
    address.classOf(parsed),
    ...clocks.map((axis) => axis.classOf(minuteOfWeek(axis.timezone, timeMs) ?? 0)),
  ];
  return masks.every((mask, index) => (mask & (parts[index]?.each ?? 0n)) !== 0n);
}

/** Distinct sets of roles, and the set of each group, so that no box compares the roles of all principals. */
class RoleSets {
  readonly #sets: readonly (readonly RoleName[])[];
  readonly #kinds: readonly Principal['kind'][];
  readonly #setOf: readonly number[];

  constructor(sets: readonly (readonly RoleName[])[], kinds: readonly Principal['kind'][], setOf: readonly number[]) {
    this.#sets = sets;
    this.#kinds = kinds;
    this.#setOf = setOf;
  }

  /** Finds roles that only the principals of a box hold, or that others hold only beside a further role. */
  describe(groups: ReadonlySet<number>): RoleRegion {
    const kind = [...groups].some((group) => this.#kinds[group] === 'user') ? 'user' : 'api_key';
    const inside = new Set<readonly RoleName[]>();
    const outside = new Set<readonly RoleName[]>();
    for (const [group, set] of this.#setOf.entries()) {
      if (this.#kinds[group] === kind) (groups.has(group) ? inside : outside).add(this.#sets[set] ?? []);
    }
    if (outside.size === 0) return { any: [], none: [], inexact: false };
    const insideCounts = countRoles(inside);
    const outsideCounts = countRoles(outside);
    const candidates = [...insideCounts]
      .map(([role, count]) => ({ role, count, others: outsideCounts.get(role) ?? 0 }))
      .sort((a, b) => a.others - b.others || b.count - a.count || (a.role < b.role ? -1 : 1))
      .map(({ role }) => role);
    const any = hitting([...inside], candidates);
    const others = [...outside].filter(isHit(any));
    const none = hitting(
      others,
      [...outsideCounts.keys()].filter((role) => !insideCounts.has(role)),
    );
    const isExact = [...inside].every(isHit(any)) && others.every(isHit(none));
    return isExact
      ? { any: any.toSorted(), none: none.toSorted(), inexact: false }
      : { any: candidates.toSorted(), none: [], inexact: true };
  }
}

export function* roleSetsOf(groups: readonly PrincipalGroup[]): Steps<RoleSets> {
  const sets: (readonly RoleName[])[] = [];
  const known = new Map<string, number>();
  const setOf: number[] = [];
  for (const { principal } of groups) {
    yield;
    const roles = effectiveRoles(principal);
    const key = roles.toSorted().join(' ');
    setOf.push(known.getOrInsertComputed(key, () => sets.push(roles) - 1));
  }
  const kinds = groups.map(({ principal }) => principal.kind);
  return new RoleSets(sets, kinds, setOf);
}

function countRoles(sets: Iterable<readonly RoleName[]>): ReadonlyMap<RoleName, number> {
  const counts = new Map<RoleName, number>();
  for (const set of sets) for (const role of set) counts.set(role, (counts.get(role) ?? 0) + 1);
  return counts;
}

function isHit(roles: readonly RoleName[]): (set: readonly RoleName[]) => boolean {
  return (set) => roles.some((role) => set.includes(role));
}

/** Returns few roles, of which each set has one if there are such; the earlier roles first. */
function hitting(sets: readonly (readonly RoleName[])[], roles: readonly RoleName[]): readonly RoleName[] {
  const chosen: RoleName[] = [];
  let left = sets;
  for (const role of roles) {
    if (left.length === 0) break;
    const rest = left.filter((set) => !set.includes(role));
    if (rest.length < left.length) chosen.push(role);
    left = rest;
  }
  return chosen;
}
