/** Metrics of webhooks: the outcomes of attempts, and what waits. */

import { counter, gauge } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const WEBHOOK_METRICS = {
  postern_webhook_attempts_total: counter(['outcome'], 'Attempts to deliver an event to a webhook, by outcome.', {
    explanation:
      '`delivered`, `retried` (failed, and another attempt follows), `failed` (the last attempt, after 24 h) or `disabled` (the receiver answered 410).',
  }),
  postern_webhook_waiting_deliveries: gauge([], 'Deliveries that wait for their first or next attempt.', {
    together: 'max',
    explanation: 'Counted every 15 s.',
  }),
  postern_webhook_overdue_seconds: gauge([], 'Time for which the first due delivery has waited for its attempt.', {
    together: 'max',
    explanation: 'Counted every 15 s. Alert on more than 300: events are late for another reason than their receivers.',
  }),
} as const;

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
