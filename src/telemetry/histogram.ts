/**
 * A histogram of durations. An observation costs a few nanoseconds: it increments plain counters, which are read at
 * each scrape.
 */

/** Upper bounds in milliseconds: fine for checks from memory, coarse up to the timeout of a fill. */
const BOUNDS_MS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500] as const;

export class DurationHistogram {
  /** One more than the bounds: the last counts durations above all of them. */
  readonly #counts = new Float64Array(BOUNDS_MS.length + 1);
  #sumMs = 0;

  observe(ms: number): void {
    let bucket = 0;
    while (bucket < BOUNDS_MS.length && ms > (BOUNDS_MS[bucket] ?? 0)) {
      bucket++;
    }
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#sumMs += ms;
  }

  /** Returns the number of durations of at most each bound, with the bound in seconds. */
  buckets(): readonly (readonly [string, number])[] {
    let total = 0;
    return Array.from(this.#counts, (count, index) => {
      total += count;
      const bound = BOUNDS_MS[index];
      return [bound === undefined ? '+Inf' : String(bound / 1000), total];
    });
  }

  count(): number {
    return this.#counts.reduce((total, count) => total + count, 0);
  }

  sumSeconds(): number {
    return this.#sumMs / 1000;
  }
}

/**
 * Gives each histogram the one heading that it has in Prometheus' text format. The library knows it as three counters,
 * because counters are cheap to read and to sum over processes.
 */
export function withHistogramHeadings(exposition: string): string {
  let text = exposition;
  for (const [, name = ''] of exposition.matchAll(/^# TYPE (\w+)_bucket counter$/gm)) {
    text = text
      .replace(new RegExp(`^\\n?# (?:HELP|TYPE) ${name}_(?:sum|count) .*\\n`, 'gm'), '')
      .replace(`# HELP ${name}_bucket `, `# HELP ${name} `)
      .replace(`# TYPE ${name}_bucket counter`, `# TYPE ${name} histogram`);
  }
  return text;
}
