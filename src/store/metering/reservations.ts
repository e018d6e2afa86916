/** Renewals and releases of reservations: one statement for a batch. */

import type { ReservationChange } from '../../metering/ports.ts';
import { firstRow, type Queries } from './statement.ts';

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
