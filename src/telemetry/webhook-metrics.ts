/** Metrics of webhooks: the outcomes of attempts, and what waits. */

import type { Metrics } from './metrics.ts';

export interface WebhookReports {
  readonly attempted: (outcome: 'delivered' | 'retried' | 'failed' | 'disabled') => void;
  /** Sets the number of waiting deliveries, and for how long the first due one has waited. */
  readonly waiting: (backlog: { readonly waiting: number; readonly overdueSeconds: number }) => void;
}

export function webhookReports(metrics: Metrics): WebhookReports {
  const attempts = { delivered: 0, retried: 0, failed: 0, disabled: 0 };
  let backlog = { waiting: 0, overdueSeconds: 0 };
  metrics.show('postern_webhook_attempts_total', () => Object.entries(attempts));
  metrics.show('postern_webhook_waiting_deliveries', () => backlog.waiting);
  metrics.show('postern_webhook_overdue_seconds', () => backlog.overdueSeconds);
  return {
    attempted: (outcome) => {
      attempts[outcome]++;
    },
    waiting: (counted) => {
      backlog = counted;
    },
  };
}
