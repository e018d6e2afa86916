/**
 * Sends deliveries: one at a time for each webhook in each process, many webhooks at a time. A receiver that hangs
 * occupies one turn, and a tenant leaves half of the free turns to others.
 */

import { Semaphore } from '../../concurrency/semaphore.ts';
import { startPeriodicRuns } from '../../concurrency/single-flight.ts';
import { attemptDelivery, type SendParts } from './attempt.ts';
import { claimDelivery, type DueWebhook, dueWebhooks } from './delivery-queries.ts';

/** The largest number of attempts at a time in one process, and requests for a test that wait for their turn. */
const CONCURRENCY = 32;
const MAX_WAITING = 32;
/** The largest number of attempts at a time to one host: many tenants may have webhooks there. */
const PER_HOST = 8;
/** Deliveries of one webhook in one turn. */
const PER_TURN = 50;
/** Webhooks that one run considers: more than it can begin. */
const CANDIDATES = 128;
const EVERY_MS = 500;

export function webhookTurns(): Semaphore {
  return new Semaphore({ permits: CONCURRENCY, maxWaiting: MAX_WAITING });
}

export interface Sender {
  /** Begins to send what is due. Resolves when everything that it began has ended. For tests. */
  readonly flush: () => Promise<void>;
  /** Ends the attempts under way and gives them back. */
  readonly stop: () => Promise<void>;
}

interface SenderEvents {
  /** Called after each run that could read what is due. */
  readonly onRun: () => void;
  /** Called when the store was unavailable. */
  readonly onFault: (error: unknown) => void;
}

/** @param abort ends the attempts under way, by the signal of `parts.fetch` */
export function startSender(
  parts: SendParts,
  { onRun, onFault }: SenderEvents,
  abort: () => void,
  everyMs = EVERY_MS,
): Sender {
  const running = new Map<string, Promise<void>>();
  const hosts = new Map<string, number>();
  const begin = (webhook: DueWebhook): void => {
    const { id, tenant_id: tenant, url } = webhook;
    const host = URL.canParse(url) ? new URL(url).host : url;
    const busy = hosts.get(host) ?? 0;
    if (running.has(id) || busy >= PER_HOST || !parts.turns.tryAcquire(tenant)) return;
    hosts.set(host, busy + 1);
    const ended = sendDue(parts, webhook)
      .catch(onFault)
      .finally(() => {
        parts.turns.release(tenant);
        running.delete(id);
        const left = (hosts.get(host) ?? 1) - 1;
        if (left > 0) hosts.set(host, left);
        else hosts.delete(host);
      });
    running.set(id, ended);
  };
  const run = async (): Promise<void> => {
    try {
      for (const webhook of await dueWebhooks(parts.db.knex, CANDIDATES, PER_HOST)) begin(webhook);
      onRun();
    } catch (error) {
      onFault(error);
    }
  };
  const stopRuns = startPeriodicRuns(run, everyMs);
  const ended = async (): Promise<void> => {
    await Promise.all(running.values());
  };
  return {
    flush: async () => {
      await run();
      await ended();
    },
    stop: async () => {
      abort();
      await stopRuns();
      await ended();
    },
  };
}

/** Sends what is due, until an attempt fails: then others have their turn. */
async function sendDue(parts: SendParts, { id }: DueWebhook): Promise<void> {
  for (let sent = 0; sent < PER_TURN; sent++) {
    const claimed = await claimDelivery(parts.db.knex, id);
    if (claimed === undefined || (await attemptDelivery(parts, claimed)) !== 'delivered') return;
  }
}
