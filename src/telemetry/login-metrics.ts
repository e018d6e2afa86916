/** Metrics of logins and sessions. */

import { counter } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const LOGIN_METRICS = {
  postern_logins_total: counter(['outcome'], 'Logins by outcome.', {
    explanation: '`success`, `failure`, `refused` or `throttled`.',
  }),
  postern_refresh_reuse_total: counter(
    [],
    'Refresh tokens that were used twice. The server ended the session of each.',
  ),
} as const;

export type LoginOutcome = 'success' | 'failure' | 'refused' | 'throttled';

export function loginReports(metrics: Metrics) {
  const logins = new Map<LoginOutcome, number>();
  let refreshReuses = 0;
  metrics.show('postern_logins_total', () => logins);
  metrics.show('postern_refresh_reuse_total', () => refreshReuses);
  return {
    login: (outcome: LoginOutcome): void => {
      logins.set(outcome, (logins.get(outcome) ?? 0) + 1);
    },
    /** Counts a refresh token that was used twice. */
    refreshReuse: (): void => {
      refreshReuses++;
    },
  };
}
