/** Finds the name that somebody may have meant. */

const MAX_DISTANCE = 2;

/** The candidate with the fewest letters wrong, missing or too many, at most two; undefined when none is that close. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = MAX_DISTANCE + 1;
  for (const candidate of candidates) {
    const distance = Math.abs(candidate.length - name.length) <= MAX_DISTANCE ? editDistance(name, candidate) : bestDistance;
    if (distance < bestDistance) {
      [best, bestDistance] = [candidate, distance];
    }
  }
  return best;
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

export function didYouMean(name: string, candidates: Iterable<string>): string {
  const meant = nearest(name, candidates);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}
