/**
 * Regions of requests: products of one set for each axis (the names of each kind, addresses, the hours of each time
 * zone). The sets of requests that rules match are unions of regions.
 *
 * A request may have several resources of one kind. On such an axis, a region holds the requests whose resources are all
 * in `each`, and of which each set of `some` has one. On every other axis `some` is empty.
 */

import type { ComparisonBudget } from './budget.ts';

export interface Axis {
  readonly all: bigint;
  /** True if a request may have several values. */
  readonly many: boolean;
}

export interface RegionPart {
  readonly each: bigint;
  readonly some: readonly bigint[];
}

/** One part for each axis of the space. No part is empty. */
export type Region = readonly RegionPart[];

const NONE: readonly bigint[] = [];

export function eachIn(mask: bigint): RegionPart {
  return { each: mask, some: NONE };
}

export function someIn(axis: Axis, mask: bigint): RegionPart {
  return axis.many ? { each: axis.all, some: [mask] } : eachIn(mask);
}

/** Returns the part that both have; undefined if it is empty. */
function meetParts(a: RegionPart, b: RegionPart): RegionPart | undefined {
  const each = a.each & b.each;
  if (each === 0n) return undefined;
  if (a.some.length === 0 && b.some.length === 0) return each === a.each ? a : each === b.each ? b : eachIn(each);
  const some = [...new Set([...a.some, ...b.some].map((mask) => mask & each))];
  if (some.includes(0n)) return undefined;
  // A set that contains another one, or all of them, says nothing more.
  const kept = some.filter(
    (mask) => mask !== each && !some.some((other) => other !== mask && (other & mask) === other),
  );
  return { each, some: kept };
}

function isWithin(inner: RegionPart, outer: RegionPart): boolean {
  if ((inner.each & outer.each) !== inner.each) return false;
  return outer.some.every(
    (mask) => (inner.each & mask) === inner.each || inner.some.some((one) => (one & mask) === one),
  );
}

export class Space {
  readonly axes: readonly Axis[];
  readonly all: Region;
  readonly #budget: ComparisonBudget;

  constructor(axes: readonly Axis[], budget: ComparisonBudget) {
    this.axes = axes;
    this.all = axes.map(({ all }) => eachIn(all));
    this.#budget = budget;
  }

  /** Returns the requests that both have; undefined if there are none. */
  meet(a: Region, b: Region): Region | undefined {
    this.#budget.spendComparisons(1);
    const parts: RegionPart[] = [];
    for (const [index, part] of a.entries()) {
      const met = meetParts(part, b[index] ?? part);
      if (met === undefined) return undefined;
      parts.push(met);
    }
    return parts;
  }

  /** Returns what is left of a region without another one, as regions that do not overlap. */
  minus(a: Region, b: Region): readonly Region[] {
    if (this.meet(a, b) === undefined) return [a];
    const left: Region[] = [];
    let rest: Region | undefined = a;
    for (const [index, part] of b.entries()) {
      const axis = this.axes[index];
      if (axis === undefined) continue;
      for (const [inside, outside] of [
        ...(part.each === axis.all ? [] : [[eachIn(part.each), someIn(axis, axis.all & ~part.each)] as const]),
        ...part.some.map((mask) => [someIn(axis, mask), eachIn(axis.all & ~mask)] as const),
      ]) {
        const cut = rest && this.#with(rest, index, outside);
        if (cut !== undefined) left.push(cut);
        rest = rest && this.#with(rest, index, inside);
      }
    }
    return left;
  }

  #with(region: Region, index: number, part: RegionPart): Region | undefined {
    const met = meetParts(region[index] ?? part, part);
    return met && region.with(index, met);
  }

  /** Returns what is left of regions without the regions of rules. */
  without(regions: readonly Region[], removed: readonly Region[]): readonly Region[] {
    let left = regions;
    for (const one of removed) {
      if (left.length === 0) break;
      left = left.flatMap((region) => this.minus(region, one));
    }
    return left;
  }

  /** Returns the parts of regions that one of the others has, as regions that do not overlap. */
  within(regions: readonly Region[], others: readonly Region[]): readonly Region[] {
    const found: Region[] = [];
    let left: readonly Region[] = regions;
    for (const other of others) {
      if (left.length === 0) break;
      for (const region of left) {
        const met = this.meet(region, other);
        if (met !== undefined) found.push(met);
      }
      left = left.flatMap((region) => this.minus(region, other));
    }
    return found;
  }

  /** Joins regions that differ in one axis only, as long as there are such. */
  joined(regions: readonly Region[]): readonly Region[] {
    const joined: Region[] = [];
    for (let region of regions) {
      for (let at = 0; at < joined.length; ) {
        const both = this.#join(joined[at] ?? region, region);
        if (both === undefined) at++;
        else {
          joined.splice(at, 1);
          region = both;
          at = 0;
        }
      }
      joined.push(region);
    }
    return joined;
  }

  #join(a: Region, b: Region): Region | undefined {
    this.#budget.spendComparisons(1);
    if (a.every((part, index) => isWithin(part, b[index] ?? part))) return b;
    if (b.every((part, index) => isWithin(part, a[index] ?? part))) return a;
    let differs = -1;
    for (const [index, part] of a.entries()) {
      const other = b[index] ?? part;
      if (isWithin(part, other) && isWithin(other, part)) continue;
      if (differs >= 0 || this.axes[index]?.many === true) return undefined;
      differs = index;
    }
    return a.with(differs, eachIn((a[differs]?.each ?? 0n) | (b[differs]?.each ?? 0n)));
  }
}

export function regionKey(region: Region): string {
  return region.map(({ each, some }) => [each, ...some].map((mask) => mask.toString(16)).join('+')).join(' ');
}
