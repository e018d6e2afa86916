/**
 * One deterministic automaton of many globs. Its states are sets of places in the globs, and are built when they are
 * first reached. After a name, the state shows which of the globs match it.
 */

import { CONTROL } from '../../domain/text.ts';
import type { ComparisonBudget } from './budget.ts';

const STAR = -1;
const END = -2;
/** The code of every character that occurs in no glob. */
export const OTHER_CHARACTER = -3;

export interface State {
  /** Sorted by glob and place. */
  readonly places: readonly number[];
  /** Indices of the globs that match. */
  readonly matched: readonly number[];
  /** The state after each character that is not like the others. */
  readonly next: ReadonlyMap<number, readonly number[]>;
  readonly other: readonly number[];
  readonly after: Map<number, State>;
}

export class GlobAutomaton {
  readonly #tokens: number[] = [];
  /** The glob of each token. */
  readonly #globs: number[] = [];
  readonly #states = new Map<string, State>();
  readonly #budget: ComparisonBudget;
  readonly start: State;
  /** A character that occurs in no glob. */
  readonly other: string;

  constructor(globs: readonly string[], budget: ComparisonBudget) {
    this.#budget = budget;
    const starts: number[] = [];
    for (const [index, glob] of globs.entries()) {
      starts.push(this.#tokens.length);
      for (const character of glob) this.#push(character === '*' ? STAR : (character.codePointAt(0) ?? 0), index);
      this.#push(END, index);
    }
    this.other = unusedCharacter(new Set(this.#tokens));
    this.start = this.#state(this.#closed(starts));
  }

  #push(token: number, glob: number): void {
    this.#tokens.push(token);
    this.#globs.push(glob);
  }

  /** @param code a code point, or `OTHER_CHARACTER` */
  after(state: State, code: number): State {
    const isOther = !state.next.has(code);
    const key = isOther ? OTHER_CHARACTER : code;
    return state.after.getOrInsertComputed(key, () => this.#state(this.#closed(state.next.get(key) ?? state.other)));
  }

  afterName(name: string): State {
    let state = this.start;
    for (const character of name) state = this.after(state, character.codePointAt(0) ?? 0);
    return state;
  }

  /**
   * Adds the places that a star reaches without a character. Once a star is reached, the places before it in its glob
   * match nothing that the star does not match, so they are left out.
   */
  #closed(places: readonly number[]): readonly number[] {
    this.#budget.spendPlaces(places.length);
    const all = new Set<number>();
    for (const place of places) {
      all.add(place);
      for (let at = place; this.#tokens[at] === STAR; ) all.add(++at);
    }
    const kept: number[] = [];
    let starred = -1;
    for (const place of [...all].sort((left, right) => right - left)) {
      const glob = this.#globs[place] ?? 0;
      if (glob === starred) continue;
      kept.push(place);
      if (this.#tokens[place] === STAR) starred = glob;
    }
    return kept.reverse();
  }

  #state(places: readonly number[]): State {
    const key = places.join(' ');
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    this.#budget.spendState();
    const matched: number[] = [];
    const stars: number[] = [];
    const next = new Map<number, number[]>();
    for (const place of places) {
      const token = this.#tokens[place] ?? END;
      if (token === END) matched.push(this.#globs[place] ?? 0);
      else if (token === STAR) stars.push(place);
    }
    for (const place of places) {
      const token = this.#tokens[place] ?? END;
      if (token < 0) continue;
      next.getOrInsertComputed(token, () => [...stars]).push(place + 1);
    }
    const state: State = { places, matched, next, other: stars, after: new Map() };
    this.#states.set(key, state);
    return state;
  }
}

/** Readable characters first. */
const CANDIDATES = 'x0123456789abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_~';

function unusedCharacter(used: ReadonlySet<number>): string {
  for (const character of CANDIDATES) if (!used.has(character.codePointAt(0) ?? 0)) return character;
  for (let code = 0xe0; ; code++) {
    const character = String.fromCodePoint(code);
    if (!used.has(code) && character.isWellFormed() && !CONTROL.test(character)) return character;
  }
}
