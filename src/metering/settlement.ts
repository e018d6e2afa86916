/** What the end of a request costs: measured if the upstream reported it, estimated by rule otherwise. */

import { BYTES_PER_TOKEN } from '../decision/limits.ts';
import { cutUtf8 } from '../domain/text.ts';
import type { ReservedTokens } from './admission.ts';
import { dayOf, periodOf } from './calendar.ts';
import type { Settlement } from './ports.ts';
import type { Reservation } from './reservation-ids.ts';

/** What the upstream reported, in whole tokens; the answer may tell one part only. */
export interface MeasuredUsage {
  readonly prompt: number | undefined;
  readonly completion: number | undefined;
  /** Of the prompt, what came from a cache. */
  readonly cached: number;
  /** Undefined if a part is missing and no total was told. */
  readonly total: number | undefined;
  /** The model that answered, as it calls itself. */
  readonly model: string | undefined;
}

/** Largest count of tokens that an answer may tell. */
export const MAX_USAGE_TOKENS = 1_000_000_000;

/**
 * What the upstream had to do with a request. `untouched`: no byte of the request went to it. `forwarded`: the request went to it, and the
 * answer that the client got is not the upstream's, or not all of it. `answered`: it gave its answer to the end.
 */
export type UpstreamPart = 'untouched' | 'forwarded' | 'answered';

/** A response of `/v1/responses`, as an answer shows it. */
export interface ResponseState {
  /** Undefined if the answer names none that can be kept. */
  readonly id: string | undefined;
  /** False while it is queued or in progress. */
  readonly complete: boolean;
  /** Whether the upstream goes on with it after the answer breaks off. */
  readonly background: boolean;
}

/** One request that is over. */
export interface FinishedUsage {
  readonly reservation: string;
  readonly tenant: string | undefined;
  readonly user: string | undefined;
  readonly key: string | undefined;
  /** That the request asked for. */
  readonly model: string | undefined;
  /** Undefined when the upstream did not report it, or Envoy could not read it. */
  readonly usage: MeasuredUsage | undefined;
  /** Bytes of the answer's text in UTF-8, as far as it passed; undefined if Envoy found no text of a known form, `hidden` if the answer is encoded. */
  readonly textBytes: number | 'hidden' | undefined;
  /** Of the answer; 0 = there was none. */
  readonly status: number;
  readonly responseBytes: number;
  readonly upstream: UpstreamPart;
  /** Absent if the answer shows no response. */
  readonly response?: ResponseState | undefined;
}

export type SpentTokens = Pick<Settlement, 'prompt' | 'completion' | 'cached' | 'total' | 'estimated'>;

const NOTHING: SpentTokens = { prompt: 0, completion: 0, cached: 0, total: 0, estimated: false };
/** Answers by which the platform says that it removed a collection, or will: 200 OK, 202 Accepted, 204 No Content. */
const REMOVED: ReadonlySet<number> = new Set([200, 202, 204]);
/** In UTF-8. */
const MAX_NAME_BYTES = 512;

/** Reports whether the upstream goes on with a response after its answer, which therefore tells nothing of the usage. */
function isPending({ response, status, upstream }: FinishedUsage): boolean {
  if (response === undefined || response.complete || !isSuccess(status)) return false;
  return upstream === 'answered' || response.background;
}

/**
 * Returns the tokens that a request spent. A response that goes on after its answer counts with its whole reservation. For every other
 * request, reported usage counts, with any status, and the server estimates a part that is not reported. Without usage, a request counts
 * by estimate if Envoy forwarded it, unless the upstream answered with an error. The prompt's estimate is that of the check. The answer's
 * estimate comes from its text, within the answer's bound.
 */
export function spentBy(finished: FinishedUsage, reserved: ReservedTokens): SpentTokens {
  const { usage } = finished;
  if (isPending(finished)) {
    const { prompt, answer: completion } = reserved;
    return { prompt, completion, cached: 0, total: prompt + completion, estimated: true };
  }
  if (usage?.total !== undefined) {
    const { prompt = 0, completion = 0, cached, total } = usage;
    return { prompt, completion, cached, total, estimated: false };
  }
  if (usage === undefined && !isForwarded(finished)) return NOTHING;
  const prompt = usage?.prompt ?? reserved.prompt;
  const completion = usage?.completion ?? answerEstimate(finished, reserved.answer);
  return { prompt, completion, cached: usage?.cached ?? 0, total: prompt + completion, estimated: true };
}

function isForwarded({ upstream, status }: FinishedUsage): boolean {
  return upstream === 'forwarded' || (upstream === 'answered' && isSuccess(status));
}

/**
 * The bytes of an answer without text of a known form count as if they were text; those of Envoy's own answer do not. The bytes of an
 * encoded answer tell nothing of its text, so its bound counts.
 */
function answerEstimate({ textBytes, responseBytes, status }: FinishedUsage, bound: number): number {
  if (textBytes === 'hidden') return isSuccess(status) ? bound : 0;
  const bytes = textBytes ?? (isSuccess(status) ? responseBytes : 0);
  return Math.min(bound, Math.ceil(bytes / BYTES_PER_TOKEN));
}

/** @param books false where another source counts the tenant's usage */
export function settlementOf(
  finished: FinishedUsage,
  reservation: Reservation,
  books: boolean,
): Settlement | undefined {
  const { tenant } = finished;
  if (tenant === undefined) return undefined;
  const { processId, counter, minute, offset, kind } = reservation;
  const metered = kind === 'usage' || kind === 'budget' || (kind === 'reports-usage' && finished.usage !== undefined);
  const spends = metered || kind === 'reads-response';
  const spent = spends && books ? spentBy(finished, reservation) : NOTHING;
  return {
    ...spent,
    processId,
    counter,
    held: kind === 'budget',
    tenant: name(tenant),
    period: periodOf(minute, offset),
    day: dayOf(minute, offset),
    // What failed was perhaps no model at all: clients may not fill the books with names of their own.
    model: isSuccess(finished.status) ? name(finished.model ?? finished.usage?.model) : '',
    key: name(finished.key),
    user: name(finished.user),
    books: metered && books,
    collections: collectionsOf(kind, finished.status),
    response: books ? responseIn(finished, metered, spent) : undefined,
    collection: kind === 'removes-collection' && reservation.answer > 0 ? reservation.answer : undefined,
  };
}

/** The response that a later request may complete, or that this request found complete with its usage. */
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
      return undefined;
    case 'adds-collection':
      return isSuccess(status) ? 1 : 0;
    case 'removes-collection':
      return REMOVED.has(status) ? -1 : 0;
    default:
      return kind satisfies never;
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Returns the name as PostgreSQL can store it: without NUL, well formed, and cut at a character border. */
function name(text: string | undefined): string {
  return cutUtf8((text ?? '').replaceAll('\0', '').toWellFormed(), MAX_NAME_BYTES);
}
