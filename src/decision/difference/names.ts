/**
 * The names of one kind of resource, as classes: two names are in one class if the same globs of the rules match both.
 * Every class has the shortest of its names as a witness, and a set of names is a set of classes (bits of a bigint). One
 * more class is the resource that a request does not name.
 */

import type { Steps } from '../../domain/steps.ts';
import { CONTROL, compareTexts } from '../../domain/text.ts';
import { mayMeet, type NameSet } from '../globs.ts';
import { MAX_RESOURCE_NAME } from '../limits.ts';
import { GlobAutomaton, OTHER_CHARACTER, type State } from './automaton.ts';
import type { ComparisonBudget } from './budget.ts';
import { bitsOf, positionsOf } from './masks.ts';
import type { NamePatterns } from './model.ts';

/** The form of the names that a route takes: `text` comes from a body, `segment` and `segments` from a path. */
export type NameForm = 'text' | 'segments' | 'segment';

/** Returns the patterns of a set, which may be more than one text of a rule. */
export function patternsOf(set: NameSet): readonly string[] {
  if (set.any) return ['*'];
  return [...set.exactNames, ...set.prefixes.map((prefix) => `${prefix}*`), ...set.globs.map((glob) => glob.text)];
}

interface NameClass {
  readonly witness: string;
  readonly matched: readonly number[];
}

/** Where a name stands in a path: at the start of a segment, after `.`, after `..`, or inside. */
type Place = 'start' | 'dot' | 'dots' | 'inside';

function placeAfter(form: NameForm, place: Place, character: string): Place | undefined {
  if (CONTROL.test(character) || !character.isWellFormed()) return undefined;
  if (form === 'text') return 'inside';
  if (character === '/') return form === 'segments' && place === 'inside' ? 'start' : undefined;
  if (character === '\\' || character === ';') return undefined;
  if (character !== '.') return 'inside';
  return place === 'start' ? 'dot' : place === 'dot' ? 'dots' : 'inside';
}

/** A name under construction: the names of an earlier one and one more character. */
interface Found {
  readonly state: State;
  readonly place: Place;
  readonly name: string;
  readonly bytes: number;
}

/** Finds a shortest name of every class, by a search over the states in the order of the names' lengths. */
function* classesOf(automaton: GlobAutomaton, form: NameForm): Steps<readonly NameClass[]> {
  const classes = new Map<string, NameClass>();
  const visited = new Map<State, Set<Place>>([[automaton.start, new Set<Place>(['start'])]]);
  const open: Found[] = [{ state: automaton.start, place: 'start', name: '', bytes: 0 }];
  for (const { state, place, name, bytes } of open) {
    yield;
    for (const code of [...state.next.keys(), OTHER_CHARACTER]) {
      const character = code === OTHER_CHARACTER ? automaton.other : String.fromCodePoint(code);
      const nextPlace = placeAfter(form, place, character);
      const length = bytes + Buffer.byteLength(character);
      if (nextPlace === undefined || length > MAX_RESOURCE_NAME) continue;
      const next: Found = {
        state: automaton.after(state, code),
        place: nextPlace,
        name: name + character,
        bytes: length,
      };
      if (nextPlace === 'inside') {
        const key = next.state.matched.join(' ');
        classes.getOrInsert(key, { witness: next.name, matched: next.state.matched });
      }
      const places = visited.getOrInsertComputed(next.state, () => new Set());
      if (places.has(nextPlace)) continue;
      places.add(nextPlace);
      open.push(next);
    }
  }
  return [...classes.values()];
}

/** One set of names as patterns. */
interface Chosen {
  readonly text: string;
  readonly mask: bigint;
}

export class NameAxis {
  /** All classes of names that requests can have. */
  readonly named: bigint;
  /** The class of the resource that a request does not name. */
  readonly unnamed: bigint;
  readonly #classes: readonly NameClass[];
  readonly #automaton: GlobAutomaton;
  readonly #masks: ReadonlyMap<string, bigint>;
  /** `*` and all patterns that match a name, the widest first. */
  readonly #known: readonly Chosen[];
  readonly #byMatched: ReadonlyMap<string, number>;
  readonly #sets = new WeakMap<NameSet, bigint>();
  readonly #described = new Map<bigint, readonly DescribedNames[]>();

  constructor(automaton: GlobAutomaton, patterns: readonly string[], classes: readonly NameClass[]) {
    this.#automaton = automaton;
    this.#classes = classes;
    this.#byMatched = new Map(classes.map(({ matched }, index) => [matched.join(' '), index]));
    this.named = (1n << BigInt(classes.length)) - 1n;
    this.unnamed = 1n << BigInt(classes.length);
    const members: number[][] = patterns.map(() => []);
    for (const [index, { matched }] of classes.entries()) for (const pattern of matched) members[pattern]?.push(index);
    this.#masks = new Map(patterns.map((text, index) => [text, bitsOf(members[index] ?? [])]));
    const bySize = patterns
      .map((text, index) => ({ text, size: members[index]?.length ?? 0, mask: this.#masks.get(text) ?? 0n }))
      .filter(({ size }) => size > 0)
      .sort((a, b) => b.size - a.size || a.text.length - b.text.length);
    this.#known = [{ text: '*', mask: this.named }, ...bySize];
  }

  /** Returns the names of a set. A pattern that the axis does not know meets no name of interest. */
  maskOf(set: NameSet): bigint {
    if (set.any) return this.named;
    return this.#sets.getOrInsertComputed(set, () => {
      let mask = 0n;
      for (const pattern of patternsOf(set)) mask |= this.#masks.get(pattern) ?? 0n;
      return mask;
    });
  }

  /** Returns the class of a name; 0 if no route takes such a name. @param name undefined: not named */
  classOf(name: string | undefined): bigint {
    if (name === undefined) return this.unnamed;
    const index = this.#byMatched.get(this.#automaton.afterName(name).matched.join(' '));
    return index === undefined ? 0n : 1n << BigInt(index);
  }

  /** Returns a name of each class of a set, without the unnamed resource. */
  *witnesses(mask: bigint): Generator<string> {
    for (const index of positionsOf(mask & this.named)) yield this.#classes[index]?.witness ?? '';
  }

  /** Returns a name of each class that has names of a narrower form. */
  *namesOf(form: NameForm): Steps<readonly string[]> {
    const classes = yield* classesOf(this.#automaton, form);
    return classes.map(({ witness }) => witness);
  }

  /** Describes a set as few sets of patterns, each with its part of the set. The parts do not overlap. */
  describe(mask: bigint): readonly DescribedNames[] {
    const wanted = mask & this.named;
    if (wanted === 0n) return [];
    return this.#described.getOrInsertComputed(wanted, () => this.#describe(wanted));
  }

  #describe(wanted: bigint): readonly DescribedNames[] {
    const known = this.#known;
    const inside = known.filter(({ mask }) => (mask & wanted) === mask);
    const plain = cover(wanted, inside);
    if (plain.left === 0n) return [{ mask: wanted, patterns: textsOf(plain), except: [], also: [] }];
    const outside = known.filter(({ mask }) => (mask & wanted) === 0n);
    const excepted = outside.reduce((all, { mask }) => all | mask, 0n);
    const usable = known.filter(({ mask }) => (mask & ~wanted & ~excepted) === 0n && (mask & wanted) !== 0n);
    const chosen = cover(wanted, usable);
    const parts: DescribedNames[] = [];
    if (chosen.left !== wanted) {
      const excess = chosen.used.reduce((all, { mask }) => all | mask, 0n) & ~wanted;
      const except = textsOf(cover(excess, outside));
      parts.push({ mask: wanted & ~chosen.left, patterns: textsOf(chosen), except, also: [] });
    }
    for (const index of positionsOf(chosen.left)) parts.push(this.#describeClass(index));
    return parts;
  }

  /** One class: the names that all of its globs match and no other. */
  #describeClass(index: number): DescribedNames {
    const known = this.#known;
    const mask = 1n << BigInt(index);
    const around = known.filter((one) => (one.mask & mask) !== 0n);
    const smallest = around.filter((one) => !around.some((other) => other !== one && isWithin(other.mask, one.mask)));
    const [first, ...also] = smallest.map(({ text }) => text);
    const excess = smallest.reduce((all, one) => all & one.mask, this.named) & ~mask;
    const others = known.filter((one) => (one.mask & mask) === 0n);
    return { mask, patterns: first === undefined ? [] : [first], except: textsOf(cover(excess, others)), also };
  }
}

interface DescribedNames extends NamePatterns {
  readonly mask: bigint;
}

/** True for a smaller set; of two equal ones, neither is within the other. */
function isWithin(inner: bigint, outer: bigint): boolean {
  return inner !== outer && (inner & outer) === inner;
}

interface Cover {
  readonly used: readonly Chosen[];
  readonly left: bigint;
}

/** Covers a set with few of the patterns. @param patterns the widest first */
function cover(wanted: bigint, patterns: readonly Chosen[]): Cover {
  const used: Chosen[] = [];
  let left = wanted;
  for (const one of patterns) {
    if (left === 0n) break;
    if ((one.mask & left) === 0n) continue;
    used.push(one);
    left &= ~one.mask;
  }
  return { used, left };
}

function textsOf({ used }: Cover): readonly string[] {
  return used.map(({ text }) => text).sort(compareTexts);
}

/**
 * Builds the axis of all names that sets of the rules distinguish.
 * @param changed the patterns that a change touches; undefined: names elsewhere matter too. Other patterns are left out
 *   if they meet none of them
 * @throws BoundExceeded
 */
export function* nameAxis(
  sets: Iterable<NameSet>,
  changed: readonly string[] | undefined,
  form: NameForm,
  budget: ComparisonBudget,
): Steps<NameAxis> {
  const patterns = new Set<string>();
  for (const set of sets) {
    for (const pattern of set.any ? [] : patternsOf(set)) {
      if (changed === undefined || changed.some((one) => mayMeet(one, pattern))) patterns.add(pattern);
    }
    yield;
  }
  const texts = [...patterns];
  const automaton = new GlobAutomaton(texts, budget);
  return new NameAxis(automaton, texts, yield* classesOf(automaton, form));
}
