/** The usage of a finished request: measured if the upstream reported it, otherwise estimated by rule. */

import { BYTES_PER_TOKEN } from '../decision/limits.ts';
import { costOf } from '../decision/prices.ts';
import { cutUtf8 } from '../domain/text.ts';
import type { ReservedTokens } from './admission.ts';
import { dayOf, periodOf } from './calendar.ts';
import { type Charges, NO_CHARGES } from './charge-text.ts';
import type { Charge, Settlement } from './ports.ts';
import { isHeld, type Reservation } from './reservation-ids.ts';

/** The usage that the upstream reported, in whole tokens. It may report one part only. */
export interface MeasuredUsage {
  readonly prompt: number | undefined;
  readonly completion: number | undefined;
  /** The part of the prompt that came from a cache. */
  readonly cached: number;
  /** The part of the prompt that was written to a cache. Absent: none. */
  readonly cacheWrite?: number;
  /** Undefined if a part is missing and the upstream reported no total. */
  readonly total: number | undefined;
  /** The name of the model in the answer. */
  readonly model: string | undefined;
}

/** The largest number of tokens that an answer may report. */
export const MAX_USAGE_TOKENS = 1_000_000_000;

/**
 * The upstream's part in a request. `untouched`: it received no byte of the request. `forwarded`: it received the
 * request, and the client received another answer, or not all of the upstream's. `answered`: its answer is complete.
 */
type UpstreamPart = 'untouched' | 'forwarded' | 'answered';

/** The state of a response of `/v1/responses` in an answer. */
export interface ResponseState {
  /** Undefined if the answer has no id that the store can keep. */
  readonly id: string | undefined;
  /** False while it is queued or in progress. */
  readonly complete: boolean;
  /** Whether the upstream continues it if the answer breaks off. */
  readonly background: boolean;
}

export interface FinishedUsage {
  readonly reservation: string;
  readonly tenant: string | undefined;
  readonly user: string | undefined;
  readonly key: string | undefined;
  /** The model that the request named. */
  readonly model: string | undefined;
  /** Undefined if the upstream did not report it, or Envoy could not read it. */
  readonly usage: MeasuredUsage | undefined;
  /**
   * Bytes of the answer's text that passed, in UTF-8; undefined if Envoy found no text of a known form, `hidden` if the
   * answer is encoded.
   */
  readonly textBytes: number | 'hidden' | undefined;
  /** The answer's status; 0 = no answer. */
  readonly status: number;
  readonly responseBytes: number;
  readonly upstream: UpstreamPart;
  /** Absent if the answer contains no response. */
  readonly response?: ResponseState | undefined;
  /** The text that the check's answer carried, see charge-text.ts. Absent: none. */
  readonly charges?: string | undefined;
}

type SpentTokens = Pick<Settlement, 'prompt' | 'completion' | 'cached' | 'cacheWrite' | 'total' | 'estimated'>;

const NOTHING: SpentTokens = { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, total: 0, estimated: false };
/** Statuses that report a removed collection, or one that will be removed: OK, Accepted, No Content. */
const REMOVED: ReadonlySet<number> = new Set([200, 202, 204]);
const MAX_NAME_BYTES = 512;

/** Reports whether the upstream continues a response after its answer, which then does not report the usage. */
function isPending({ response, status, upstream }: FinishedUsage): boolean {
  if (response === undefined || response.complete || !isSuccess(status)) return false;
  return upstream === 'answered' || response.background;
}

/**
 * Returns the tokens that a request spent. A response that continues after its answer counts with its whole
 * reservation. For every other request, reported usage counts, with any status, and the server estimates a part that is
 * not reported. Without usage, a request counts by estimate if Envoy forwarded it, unless the upstream answered with an
 * error. The prompt's estimate is that of the check. The answer's estimate comes from its text, within the answer's
 * bound.
 */
export function spentBy(finished: FinishedUsage, reserved: ReservedTokens): SpentTokens {
  const { usage } = finished;
  if (isPending(finished)) {
    const { prompt, answer: completion } = reserved;
    return { prompt, completion, cached: 0, cacheWrite: 0, total: prompt + completion, estimated: true };
  }
  if (usage?.total !== undefined) {
    const { prompt = 0, completion = 0, cached, cacheWrite = 0, total } = usage;
    return { prompt, completion, cached, cacheWrite, total, estimated: false };
  }
  if (usage === undefined && !isForwarded(finished)) return NOTHING;
  const prompt = usage?.prompt ?? reserved.prompt;
  const completion = usage?.completion ?? answerEstimate(finished, reserved.answer);
  const { cached = 0, cacheWrite = 0 } = usage ?? {};
  return { prompt, completion, cached, cacheWrite, total: prompt + completion, estimated: true };
}

function isForwarded({ upstream, status }: FinishedUsage): boolean {
  return upstream === 'forwarded' || (upstream === 'answered' && isSuccess(status));
}

/**
 * Estimates the tokens of an answer. If it has no text of a known form, all of its bytes count as text, unless Envoy
 * produced the answer. The size of an encoded answer says nothing about its text, so its bound counts.
 */
function answerEstimate({ textBytes, responseBytes, status }: FinishedUsage, bound: number): number {
  if (textBytes === 'hidden') return isSuccess(status) ? bound : 0;
  const bytes = textBytes ?? (isSuccess(status) ? responseBytes : 0);
  return Math.min(bound, Math.ceil(bytes / BYTES_PER_TOKEN));
}

/**
 * @param books false if another source counts the tenant's usage
 * @param charges the price and the budgets that the check's answer carried
 */
export function settlementOf(
  finished: FinishedUsage,
  reservation: Reservation,
  books: boolean,
  { price, charges }: Charges = NO_CHARGES,
): Settlement | undefined {
  const { tenant } = finished;
  if (tenant === undefined) return undefined;
  const { processId, counter, minute, offset, kind } = reservation;
  const metered = kind === 'usage' || kind === 'budget' || (reportsUsage(kind) && finished.usage !== undefined);
  const spends = metered || kind === 'reads-response';
  const spent = spends && books ? spentBy(finished, reservation) : NOTHING;
  const response = books ? responseIn(finished, metered, spent) : undefined;
  return {
    ...spent,
    cost: price === undefined ? 0 : costOf(price, spent),
    priceVersion: price?.version ?? 0,
    price: metered && books && response !== undefined ? price : undefined,
    charges: books ? chargesOf(kind, metered, charges) : [],
    processId,
    counter,
    held: isHeld(kind),
    tenant: name(tenant),
    period: periodOf(minute, offset),
    day: dayOf(minute, offset),
    // A failed request may name a model that does not exist. Clients must not add such names to the usage.
    model: isSuccess(finished.status) ? name(finished.model ?? finished.usage?.model) : '',
    key: name(finished.key),
    user: name(finished.user),
    books: metered && books,
    collections: collectionsOf(kind, finished.status),
    response,
    collection: kind === 'removes-collection' && reservation.answer > 0 ? reservation.answer : undefined,
  };
}

/**
 * Returns the id of a response that a later request may complete, or that this request found complete with its usage.
 */
function responseIn(finished: FinishedUsage, metered: boolean, spent: SpentTokens): string | undefined {
  const { response } = finished;
  if (metered) return isPending(finished) ? response?.id : undefined;
  return response?.complete === true && isSuccess(finished.status) && !spent.estimated && spent.total > 0
    ? response.id
    : undefined;
}

function collectionsOf(kind: Reservation['kind'], status: number): Settlement['collections'] {
  switch (kind) {
    case 'usage':
    case 'budget':
    case 'reads-response':
    case 'reports-usage':
    case 'reports-usage-held':
      return undefined;
    case 'adds-collection':
      return isSuccess(status) ? 1 : 0;
    case 'removes-collection':
      return REMOVED.has(status) ? -1 : 0;
    default:
      return kind satisfies never;
  }
}

/** Without usage, a request that reserves no tokens spends itself: 1 of each budget of requests. */
function chargesOf(kind: Reservation['kind'], metered: boolean, charges: readonly Charge[]): readonly Charge[] {
  if (metered) return charges;
  return reportsUsage(kind) ? charges.filter(({ unit }) => unit === 'requests') : [];
}

function reportsUsage(kind: Reservation['kind']): boolean {
  return kind === 'reports-usage' || kind === 'reports-usage-held';
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Returns the name in a form that PostgreSQL can store: without NUL, well formed, and cut at a character border. */
function name(text: string | undefined): string {
  return cutUtf8((text ?? '').replaceAll('\0', '').toWellFormed(), MAX_NAME_BYTES);
}
