/** Metrics of checks. */

import type { CheckMeter } from './check-meter.ts';
import { counter, histogram, metricsOf } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

const limits = metricsOf('limits');

export const CHECK_METRICS = {
  postern_checks_total: counter(['outcome', 'code'], 'Checks by outcome and code.'),
  postern_route_checks_total: counter(['method', 'route', 'outcome'], 'Decided checks by route and outcome.'),
  postern_bodies_not_sent_total: counter(
    ['method', 'route', 'setting'],
    "Checks of a route that reads the body, for which Envoy sent no body because Envoy's configuration lacks the setting for the route.",
    {
      explanation: "The answer is 503 `unavailable`. See [Envoy's configuration](envoy.md#printing-the-configuration).",
    },
  ),
  postern_policy_reports_total: counter(['effect'], 'Checks whose outcome a report-only policy would have changed.', {
    explanation:
      '`effect` of the policy: `deny` counts requests that were allowed, `allow` requests that were denied. [Recent decisions](operations.md#recent-decisions) name the policies.',
  }),
  postern_check_duration_seconds: histogram('Time to answer a check.'),
  postern_budget_refused_checks_total: limits.counter([], 'Checks that a budget refused.', {
    explanation:
      'They are also part of `postern_checks_total{code="insufficient_quota"}`. The [decision log](decision-log.md) and [recent decisions](operations.md#recent-decisions) name the budget.',
  }),
  postern_model_limit_refused_checks_total: limits.counter(
    ['level', 'dimension'],
    'Checks that a limit by model refused.',
    {
      explanation:
        '`level`: `tenant`, `user` or `key`. `dimension`: `requests_per_minute`, `tokens_per_minute` or `parallel`.',
    },
  ),
} as const;

export function watchChecks(metrics: Metrics, checks: CheckMeter): void {
  metrics.show('postern_checks_total', () => checks.byCode());
  metrics.show('postern_route_checks_total', () => checks.byRoute());
  metrics.show('postern_bodies_not_sent_total', () => checks.bodiesNotSent());
  metrics.show('postern_policy_reports_total', () => Object.entries(checks.reported));
  metrics.show('postern_budget_refused_checks_total', () => checks.refusedByBudget);
  metrics.show('postern_model_limit_refused_checks_total', () => checks.refusedByModelLimit());
  metrics.histogram('postern_check_duration_seconds', checks.durations);
}
