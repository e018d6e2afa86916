/** What the end of a request costs: measured where the upstream said so, reckoned by rule where it did not. */

import { cutUtf8 } from '../domain/text.ts';
import { dayOf, periodOf } from './calendar.ts';
import type { Settlement } from './ports.ts';
import type { Reservation } from './reservation-ids.ts';

/** Whole tokens, as the upstream reported them. */
export interface MeasuredUsage {
  readonly prompt: number;
  readonly completion: number;
  /** Of the prompt, what came from a cache. */
  readonly cached: number;
  readonly total: number;
  /** The model that answered, as it calls itself. */
  readonly model: string | undefined;
}

/** One request that is over. */
export interface FinishedUsage {
  readonly reservation: string;
  readonly tenant: string | undefined;
  readonly user: string | undefined;
  readonly key: string | undefined;
  /** That the request asked for. */
  readonly model: string | undefined;
  /** Undefined when the upstream did not say, or nobody could read it. */
  readonly usage: MeasuredUsage | undefined;
  /** Of the answer; 0 = there was none. */
  readonly status: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

export type Spent = Pick<Settlement, 'prompt' | 'completion' | 'cached' | 'total' | 'estimated'>;

/** English text has about four bytes to a token; what surrounds it in JSON and in events makes this an upper bound in practice. */
const BYTES_PER_TOKEN = 4;
const NOTHING: Spent = { prompt: 0, completion: 0, cached: 0, total: 0, estimated: false };
/** In UTF-8. */
const MAX_NAME_BYTES = 512;

/**
 * Reported usage counts as it is, whatever the status. Without it, an answer of 2xx counts by its bytes and the request's, but never more
 * than was reserved; any other answer, and none, counts nothing.
 * @param reserved what the request might spend
 */
export function spentBy(finished: FinishedUsage, reserved: number): Spent {
  const { usage, status } = finished;
  if (usage !== undefined) {
    const { prompt, completion, cached, total } = usage;
    return { prompt, completion, cached, total, estimated: false };
  }
  if (!isSuccess(status)) return NOTHING;
  const asked = Math.ceil(finished.requestBytes / BYTES_PER_TOKEN);
  const answered = Math.ceil(finished.responseBytes / BYTES_PER_TOKEN);
  const total = Math.min(reserved, asked + answered);
  const prompt = Math.min(asked, total);
  return { prompt, completion: total - prompt, cached: 0, total, estimated: true };
}

/** @param books false where another source counts the tenant's usage */
export function settlementOf(finished: FinishedUsage, reservation: Reservation, books: boolean): Settlement | undefined {
  const { tenant } = finished;
  if (tenant === undefined) return undefined;
  const { holder, counter, minute, offset, kind } = reservation;
  const metered = kind === 'usage' || kind === 'budget';
  const spent = metered && books ? spentBy(finished, reservation.tokens) : NOTHING;
  return {
    ...spent,
    holder,
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
  };
}

function collectionsOf(kind: Reservation['kind'], status: number): Settlement['collections'] {
  switch (kind) {
    case 'usage':
    case 'budget':
      return undefined;
    case 'adds-collection':
      return isSuccess(status) ? 1 : 0;
    case 'removes-collection':
      return isSuccess(status) ? -1 : 0;
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
