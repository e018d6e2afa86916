/** The bounds of one computation. Beyond one of them the difference is incomplete, and says so. */

/**
 * The largest number of states of the automata of all globs, and of places of globs that the steps between them visit.
 */
const MAX_STATES = 40_000;
const MAX_PLACES = 1_000_000;
/** The largest number of comparisons of two regions, of about 1 us each. */
const MAX_COMPARISONS = 4_000_000;

/** A bound was exceeded. The message is the reason that the difference gives. */
export class BoundExceeded extends Error {}

const TOO_MANY_NAMES = 'The names and globs of the rules that matter are too many to compare them exactly.';

export class ComparisonBudget {
  #states = MAX_STATES;
  #places: number;
  #comparisons: number;

  constructor(comparisons = MAX_COMPARISONS, places = MAX_PLACES) {
    this.#comparisons = comparisons;
    this.#places = places;
  }

  /** @throws BoundExceeded */
  spendState(): void {
    if (--this.#states < 0) throw new BoundExceeded(TOO_MANY_NAMES);
  }

  /** @throws BoundExceeded */
  spendPlaces(count: number): void {
    this.#places -= count;
    if (this.#places < 0) throw new BoundExceeded(TOO_MANY_NAMES);
  }

  /** @throws BoundExceeded */
  spendComparisons(count: number): void {
    this.#comparisons -= count;
    if (this.#comparisons < 0)
      throw new BoundExceeded('The rules overlap in too many ways to compare all of them within the bounds.');
  }
}
