/** One attempt to send a delivery. No transaction and no lock is held while the receiver answers. */

import { createHmac } from 'node:crypto';
import type { Semaphore } from '../../concurrency/semaphore.ts';
import type { SecretKeys } from '../../identity/seal.ts';
import { type FetchOutcome, type FetchRules, fetchBounded } from '../../outbound/fetch.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { AdminParts } from '../caller/caller.ts';
import { auditRow, OPERATOR, toStorableText } from '../change/audit-row.ts';
import { TEST_EVENT } from './catalog.ts';
import {
  type AttemptResult,
  type ClaimedDelivery,
  releaseDelivery,
  saveAttempt,
  saveGone,
} from './delivery-queries.ts';
import { openSecret, secretBytes } from './secret.ts';
import { ALLOWED_HOSTS_SETTING } from './values.ts';

/** Bounds an attempt, from the resolution of the host to the end of the answer. It is shorter than a claim. */
const TIMEOUT_MS = 10_000;
/** The part of an answer that a delivery shows. */
const MAX_ANSWER_BYTES = 1024;
/** The times between the attempts. The last attempt is 24 h after the first. */
const RETRY_MS = [5, 300, 1_800, 7_200, 18_000, 36_000, 23_095].map((seconds) => seconds * 1000);
/** The part of such a time that chance takes off or adds, so that the retries of many deliveries do not coincide. */
const JITTER = 0.1;
/** The receiver wants no further requests. */
const GONE = 410;

export type AttemptOutcome = 'delivered' | 'retried' | 'failed' | 'disabled';

export interface SendParts {
  readonly db: { readonly knex: Queryable };
  readonly keys: SecretKeys;
  /** An attempt that its signal ends is given back. */
  readonly fetch: Pick<FetchRules, 'allowedHosts' | 'resolve' | 'timeoutMs' | 'signal' | 'ca'>;
  /** Shared by all attempts of the process. */
  readonly turns: Semaphore;
  /** Milliseconds since the epoch, for the timestamps of signatures. */
  readonly now: () => number;
  /** Must not throw. */
  readonly onAttempt?: (outcome: AttemptOutcome) => void;
}

/** The parts of the use cases. */
export interface WebhookParts extends AdminParts, SecretKeys {
  readonly webhooks: SendParts;
}

/**
 * Sends a claimed delivery and stores the result. Rejects with a Fault if the store is unavailable.
 * @returns undefined if the process stops
 */
export async function attemptDelivery(parts: SendParts, claimed: ClaimedDelivery): Promise<AttemptOutcome | undefined> {
  const { db, fetch, onAttempt } = parts;
  const answer = await send(parts, claimed);
  if (fetch.signal?.aborted === true) {
    await releaseDelivery(db.knex, claimed);
    return undefined;
  }
  const result = resultOf(claimed, answer);
  const outcome = result.status === GONE ? 'disabled' : result.state === 'waiting' ? 'retried' : result.state;
  if (outcome === 'disabled') await disable(db.knex, claimed, result);
  else await saveAttempt(db.knex, claimed, result);
  onAttempt?.(outcome);
  return outcome;
}

function send({ keys, fetch, now }: SendParts, claimed: ClaimedDelivery): Promise<FetchOutcome> {
  const { id, webhook_id, url, body, secret_sealed, previous_sealed } = claimed;
  const secret = openSecret(keys, webhook_id, secret_sealed);
  const previous = previous_sealed === null ? undefined : openSecret(keys, webhook_id, previous_sealed);
  if (secret === undefined) return Promise.resolve(UNREADABLE);
  const timestamp = Math.floor(now() / 1000);
  const secrets = previous === undefined ? [secret] : [secret, previous];
  return fetchBounded(url, {
    timeoutMs: TIMEOUT_MS,
    ...fetch,
    allowedHostsSetting: ALLOWED_HOSTS_SETTING,
    maxBytes: MAX_ANSWER_BYTES,
    cutsBody: true,
    method: 'POST',
    headers: {
      accept: '*/*',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': 'Postern-Webhooks',
      ...signedHeaders(secrets, { id, timestamp, body }),
    },
    body,
  });
}

const UNREADABLE: FetchOutcome = {
  kind: 'failed',
  reason: 'The webhook has no secret, or one that was sealed under another secret-key. Rotate it.',
};

function resultOf({ type, attempts }: ClaimedDelivery, answer: FetchOutcome): AttemptResult {
  const shown = { status: null, answer: null, error: null };
  const retryInMs = type === TEST_EVENT ? undefined : retryAfter(attempts);
  const failed = retryInMs === undefined ? ({ state: 'failed' } as const) : ({ state: 'waiting', retryInMs } as const);
  if (answer.kind === 'failed') return { ...shown, ...failed, error: answer.reason };
  const { status, body } = answer;
  const text = toStorableText(new TextDecoder().decode(body));
  if (status >= 200 && status < 300) return { ...shown, state: 'delivered', status, answer: text };
  const error = `The receiver answered with the status ${status}.`;
  return { ...(status === GONE ? ({ state: 'failed' } as const) : failed), status, answer: text, error };
}

/** @param attempts those that have failed @returns undefined after the last one */
function retryAfter(attempts: number): number | undefined {
  const ms = RETRY_MS[attempts - 1];
  return ms === undefined ? undefined : ms * (1 + JITTER * (2 * Math.random() - 1));
}

async function disable(q: Queryable, claimed: ClaimedDelivery, result: AttemptResult): Promise<void> {
  const { webhook_id: id, tenant_id: tenant } = claimed;
  const reason = 'The receiver answered with the status 410: it wants no further requests.';
  const entry = { target: { type: 'webhook', id }, tenant, after: { enabled: false, reason } } as const;
  await saveGone(q, claimed, result, reason, auditRow(OPERATOR, 'webhook.disable', entry, 'success'));
}

/**
 * Returns the headers of a delivery, signed as Standard Webhooks 1.0 asks for.
 * @param secrets the secret, and during a rotation the former one: a receiver accepts a request if one signature is valid
 * @param timestamp seconds since the epoch, of the attempt
 */
export function signedHeaders(
  secrets: readonly string[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
): Readonly<Record<string, string>> {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secretBytes(secret)).update(`${id}.${timestamp}.${body}`).digest('base64');
    return `v1,${mac}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
