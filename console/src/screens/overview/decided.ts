/** Decisions of a span as the chart and the table show them. */

import type { DecisionsOfMinute } from '../../../../client/index.ts';
import type { Span } from './search.ts';

const HOUR_MS = 3_600_000;
/** Reasons with a color of their own; the others are together. */
export const SHOWN_REASONS = 3;

export const STEPS = {
  '24h': { interval: 'hour', ms: HOUR_MS, count: 24 },
  '7d': { interval: 'day', ms: 24 * HOUR_MS, count: 7 },
} as const;

export interface Bar {
  /** Milliseconds since the epoch at its start. */
  readonly startMs: number;
  readonly allowed: number;
  readonly denied: number;
  /** The count of each reason, in the order of `Decided.reasons`; the last one counts all other reasons. */
  readonly byReason: readonly number[];
}

export interface Reason {
  readonly code: string;
  readonly count: number;
}

export interface Decided {
  readonly allowed: number;
  readonly denied: number;
  readonly bars: readonly Bar[];
  /** The most frequent first. */
  readonly reasons: readonly Reason[];
}

/** @param fromMs start of the first bar; rows outside the span are left out */
export function decidedOf(rows: readonly DecisionsOfMinute[], span: Span, fromMs: number): Decided {
  const { ms, count } = STEPS[span];
  const counts = new Map<string, number>();
  for (const { minute, outcome, code, count: n } of rows) {
    const startMs = Date.parse(minute);
    if (startMs < fromMs || startMs >= fromMs + count * ms) continue;
    if (outcome !== 'allow' && code !== null) counts.set(code, (counts.get(code) ?? 0) + n);
  }
  const reasons = [...counts]
    .map(([code, n]) => ({ code, count: n }))
    .sort((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
  const bars = Array.from({ length: count }, (_, i) => {
    const startMs = fromMs + i * ms;
    const own = rows.filter(({ minute }) => Math.floor(Date.parse(minute) / ms) * ms === startMs);
    const denied = own.filter(({ outcome }) => outcome !== 'allow');
    const shown = reasons.slice(0, SHOWN_REASONS).map(({ code }) => sum(denied.filter((row) => row.code === code)));
    const all = sum(denied);
    const others = all - shown.reduce((total, n) => total + n, 0);
    return {
      startMs,
      allowed: sum(own) - all,
      denied: all,
      byReason: [...shown, ...Array.from({ length: SHOWN_REASONS - shown.length }, () => 0), others],
    };
  });
  return {
    allowed: bars.reduce((total, { allowed }) => total + allowed, 0),
    denied: bars.reduce((total, { denied }) => total + denied, 0),
    bars,
    reasons,
  };
}

function sum(rows: readonly DecisionsOfMinute[]): number {
  return rows.reduce((total, { count }) => total + count, 0);
}
