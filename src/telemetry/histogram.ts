/** A histogram of durations that costs a few nanoseconds per observation: plain counters, put into words only when somebody asks. */

import type { Labelled } from './check-meter.ts';

/** Upper bounds in milliseconds: fine where warm checks are, coarse up to the time-out of a cold one. */
const BOUNDS_MS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500] as const;

export class DurationHistogram {
  /** One more than there are bounds: the last takes what is above all of them. */
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

  /** How many were at most so long, in seconds as is Prometheus' custom. */
  buckets(): readonly Labelled[] {
    let total = 0;
    return Array.from(this.#counts, (count, index) => {
      total += count;
      const bound = BOUNDS_MS[index];
      return { labels: { le: bound === undefined ? '+Inf' : String(bound / 1000) }, value: total };
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
 * The library knows our histograms as the three counters that a histogram consists of, because those can be read and summed over
 * processes cheaply. This gives them the one heading that they have in Prometheus' text format.
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
