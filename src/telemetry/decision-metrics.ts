/** Metrics of what is kept of decisions: their counts, the recent ones, the decision log, traces. */

import type { CheckMeter } from './check-meter.ts';
import { counter } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const DECISION_METRICS = {
  postern_decision_counts_dropped_total: counter(
    [],
    'Decisions that /v1/iam/decisions does not show because the buffer was full.',
    {
      explanation:
        'There were too many tenants, routes and codes at once, or the database was unreachable for too long.',
    },
  ),
  postern_shadow_checks_total: counter(['outcome', 'code'], 'Checks in shadow mode by outcome and code.', {
    explanation: 'They count in no other metric of checks. See [Adopt Postern in a week](trial.md).',
  }),
  postern_shadow_decisions_dropped_total: counter(
    [],
    'Decisions in shadow mode that /v1/iam/decisions/recent does not show because they exceeded a bound or could not be written.',
    { explanation: 'See [Bounds of a trial](trial.md#bounds).' },
  ),
  postern_other_gate_denials_dropped_total: counter(
    [],
    "Denials of another gate that Envoy's access log reported and the server did not store.",
    { explanation: 'See [Bounds of a trial](trial.md#bounds).' },
  ),
  postern_recent_denials_dropped_total: counter(
    [],
    "Denials that /v1/iam/decisions/recent does not show because they exceeded their tenant's rate or could not be written.",
    { explanation: 'See [Recent decisions](operations.md#recent-decisions).' },
  ),
  postern_decision_log_dropped_total: counter(
    ['outcome'],
    'Checks without their own line in the decision log: faults over their rate, a full buffer, or a lost batch.',
    { explanation: 'See [the decision log](decision-log.md#what-has-a-line).' },
  ),
  postern_trace_spans_dropped_total: counter(
    [],
    'Spans that were lost because the OpenTelemetry collector did not accept them or the buffer was full.',
    { explanation: 'See [traces](decision-log.md#traces).' },
  ),
} as const;

interface Dropping {
  readonly dropped: number;
}

interface KeptDecisions {
  readonly shadowMeter: CheckMeter;
  readonly trial: Dropping;
  /** The counts of checks, and those of checks in shadow mode. */
  readonly tallies: readonly Dropping[];
  readonly recent: Dropping;
  /** By outcome. Undefined without a decision log. */
  readonly log: { readonly dropped: Readonly<Record<'allow' | 'deny' | 'fault', number>> } | undefined;
  readonly tracing: Dropping | undefined;
}

const NONE_DROPPED = { allow: 0, deny: 0, fault: 0 };

export function watchDecisions(
  metrics: Metrics,
  { shadowMeter, trial, tallies, recent, log, tracing }: KeptDecisions,
): void {
  metrics.show('postern_shadow_checks_total', () => shadowMeter.byCode());
  metrics.show('postern_shadow_decisions_dropped_total', () => trial.dropped);
  metrics.show('postern_decision_counts_dropped_total', () => tallies.reduce((sum, { dropped }) => sum + dropped, 0));
  metrics.show('postern_recent_denials_dropped_total', () => recent.dropped);
  metrics.show('postern_decision_log_dropped_total', () => Object.entries(log?.dropped ?? NONE_DROPPED));
  metrics.show('postern_trace_spans_dropped_total', () => tracing?.dropped ?? 0);
}
