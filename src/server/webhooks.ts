/** Wires webhooks: the jobs that announce events, turn them into deliveries, and send those. */

import { randomBytes } from 'node:crypto';
import { startPeriodicRuns } from '../concurrency/single-flight.ts';
import { announceAlerts, announceStates } from '../iam/webhooks/announcements.ts';
import type { SendParts } from '../iam/webhooks/attempt.ts';
import { webhookBacklog } from '../iam/webhooks/delivery-queries.ts';
import { fillOutbox } from '../iam/webhooks/outbox.ts';
import { startSender, webhookTurns } from '../iam/webhooks/sender.ts';
import { type WebhookReports, webhookReports } from '../telemetry/webhook-metrics.ts';
import type { WiringContext } from './wiring-context.ts';

const OUTBOX_EVERY_MS = 1_000;
const STATES_EVERY_MS = 30_000;
const COUNT_EVERY_MS = 15_000;
/** Without a run of the sender for this long, the process warns that it is stuck. */
const STUCK_MS = 60_000;

export interface Webhooks extends SendParts {
  readonly reports: WebhookReports;
  /** Ends the attempts under way. */
  readonly abort: () => void;
}

export function webhookSending({ config, store, telemetry }: WiringContext, now: () => number): Webhooks {
  const reports = webhookReports(telemetry.metrics);
  const stop = new AbortController();
  const { secretKey, otherSecretKey } = store;
  return {
    db: store.db,
    keys: { secretKey, otherSecretKey },
    fetch: { allowedHosts: config.webhooks.allowedHosts, signal: stop.signal },
    turns: webhookTurns(),
    now,
    onAttempt: reports.attempted,
    reports,
    abort: () => stop.abort(),
  };
}

export interface WebhookJobs {
  /** Returns warnings for the operator. */
  readonly warnings: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export function startWebhooks({ config, store, telemetry }: WiringContext, webhooks: Webhooks): WebhookJobs {
  const { db } = store;
  const log = telemetry.log.child({ part: 'webhooks' });
  let isFailing = false;
  let ranMs = performance.now();
  const onFault = (err: unknown): void => {
    if (!isFailing) log.warn({ err }, 'events of webhooks could not be read or sent');
    isFailing = true;
  };
  const onRun = (): void => {
    ranMs = performance.now();
    isFailing = false;
  };
  const outbox = {
    db,
    random: (size: number) => randomBytes(size),
    onSkipped: (reason: string) => log.warn({ reason }, 'webhooks do not receive the events of some audit rows'),
  };
  const sender = startSender(webhooks, { onRun, onFault }, webhooks.abort);
  const run = (work: () => Promise<unknown>, everyMs: number): (() => Promise<void>) =>
    startPeriodicRuns(() => work().then(() => undefined, onFault), everyMs);
  const stops = [
    run(async () => {
      await announceAlerts(db);
      await fillOutbox(outbox);
    }, OUTBOX_EVERY_MS),
    run(() => announceStates(db, config.issuers.maxStalenessMs), STATES_EVERY_MS),
    run(async () => webhooks.reports.waiting(await webhookBacklog(db.knex)), COUNT_EVERY_MS),
    sender.stop,
  ];
  return {
    warnings: () =>
      performance.now() - ranMs < STUCK_MS
        ? []
        : ['webhooks: no event was sent for a minute. See the log for the reason.'],
    stop: async () => {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}
