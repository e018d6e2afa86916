/** Finds the name that somebody may have meant. */

import { editDistance } from '../domain/edit-distance.ts';

const MAX_DISTANCE = 2;

/** The candidate with the fewest letters wrong, missing or too many, at most two; undefined when none is that close. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = MAX_DISTANCE + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate, bestDistance);
    if (distance < bestDistance) {
      [best, bestDistance] = [candidate, distance];
    }
  }
  return best;
}

export function didYouMean(name: string, candidates: Iterable<string>): string {
  const meant = nearest(name, candidates);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}
