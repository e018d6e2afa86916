/** How many collections a tenant has, those being made included. */

import type { CollectionReservationRequest } from '../../metering/ports.ts';
import { firstRow, type Queries } from './statement.ts';

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
