/** Reservations of collections, renewals and releases, and notes of requests in progress. */

import type {
  CollectionReservationRequest,
  LostBooking,
  LostRequestOptions,
  OpenRequestNote,
  ReservationChange,
} from '../../metering/ports.ts';
import { meteringEntry } from './entry.ts';
import { firstRow, numberIn, type Queries } from './statement.ts';

const RESERVE = {
  name: 'metering_reserve_collection',
  text: 'select reserved from metering_reserve_collection($1, $2, $3, $4, $5)',
};

export async function reserveCollection(
  db: Queries,
  { processId, counter, tenant, max, ttlMs }: CollectionReservationRequest,
): Promise<boolean> {
  const row = await firstRow(db, { ...RESERVE, values: [processId, counter, tenant, max, ttlMs] });
  return row['reserved'] === true;
}

const CHANGE = {
  name: 'metering_change_reservations',
  text: 'select metering_change_reservations($1::text[], $2::text[], $3::bigint[], $4)',
};

export async function changeReservations(
  db: Queries,
  changes: readonly ReservationChange[],
  ttlMs: number,
): Promise<void> {
  const kinds = changes.map(({ kind }) => kind);
  const processes = changes.map(({ processId }) => processId);
  const counters = changes.map(({ counter }) => counter);
  await firstRow(db, { ...CHANGE, values: [kinds, processes, counters, ttlMs] });
}

const NOTE = {
  name: 'metering_note_requests',
  text: `
    with gone as (
      delete from open_requests where holder = $1 and note = any ($4::bigint[])
    ), noted as (
      insert into open_requests (holder, note, entries)
      select $1, $2, $3::jsonb where jsonb_array_length($3::jsonb) > 0
      on conflict (holder, note) do nothing
    )
    select true as noted`,
};

/** The end of a noted request, if its process is lost, is booked as one that spent the prompt, under no model. */
export async function noteRequests(db: Queries, { processId, note, requests, over }: OpenRequestNote): Promise<void> {
  const entries = requests.map(({ prompt, ...request }, n) => {
    const spent = { prompt, completion: 0, cached: 0, cacheWrite: 0, total: prompt, estimated: true };
    return meteringEntry({ ...request, ...spent, processId, held: false, model: '', books: true }, n);
  });
  await firstRow(db, { ...NOTE, values: [processId, note, JSON.stringify(entries), over] });
}

const BOOK = {
  name: 'metering_book_lost',
  text: 'select coalesce(booked, 0) as booked, booked is not null as found from metering_book_lost($1, $2, $3) booked',
};

export async function bookLost(
  db: Queries,
  { holdTtlMs, reservationTtlMs, settlementKeepMs }: LostRequestOptions,
): Promise<LostBooking> {
  const row = await firstRow(db, { ...BOOK, values: [holdTtlMs, reservationTtlMs, settlementKeepMs] });
  return { booked: numberIn(row, 'booked'), more: row['found'] === true };
}
