/** Notes of requests in progress: one statement for a batch, and one for each note of a process that died. */

import type { LostBooking, LostRequestOptions, OpenRequest, OpenRequestNote } from '../../metering/ports.ts';
import { firstRow, numberIn, type Queries } from './statement.ts';

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

export async function noteRequests(db: Queries, { processId, note, requests, over }: OpenRequestNote): Promise<void> {
  const entries = JSON.stringify(requests.map((request, n) => entryOf(processId, request, n)));
  await firstRow(db, { ...NOTE, values: [processId, note, entries, over] });
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

/** As the type `metering_entry` has it: its end is booked as one that spent the prompt, under no model. */
function entryOf(processId: string, request: OpenRequest, n: number): Readonly<Record<string, unknown>> {
  return {
    n,
    holder: processId,
    counter: request.counter,
    held: false,
    tenant_id: request.tenant,
    period: request.period,
    day: request.day,
    model: '',
    key_id: request.key,
    user_id: request.user,
    prompt_tokens: request.prompt,
    completion_tokens: 0,
    cached_tokens: 0,
    total_tokens: request.prompt,
    estimated: true,
    books: true,
  };
}
