/** The ends of requests: one statement books each reservation of a batch once, with all of its effects. */

import type { Settlement, SettleResult } from '../../metering/ports.ts';
import { meteringEntry } from './entry.ts';
import { firstRow, numberIn, type Queries, rowsIn } from './statement.ts';

const SETTLE = {
  name: 'metering_settle',
  // The settler is introduced first, so that its own reservations are never unknown, even right after a failover to a
  // standby that lagged. Its sign of life comes last, because its statements for holds wait while that row is locked.
  text: `
    select s.booked,
      (select coalesce(json_agg(distinct e.holder), '[]'::json) from jsonb_to_recordset($2::jsonb) as e(holder text)
       where not exists (select from metering_holders h where h.id = e.holder) and e.holder <> $1) as unknown_holders,
      metering_beat($1) as beat
    from (select metering_introduce($1) offset 0) b, lateral metering_settle($1, $2::jsonb) s`,
};

export async function settle(db: Queries, settler: string, settlements: readonly Settlement[]): Promise<SettleResult> {
  const row = await firstRow(db, { ...SETTLE, values: [settler, JSON.stringify(settlements.map(meteringEntry))] });
  return { booked: numberIn(row, 'booked'), unknownProcesses: rowsIn(row, 'unknown_holders').map(String) };
}

/** The largest number of rows of one process to read. Each row has 1024 reservations, so these are the last 65,536. */
const LATEST_BLOCKS = 64;

const SETTLED_LATELY = {
  name: 'metering_settled_lately',
  text: `
    select (count(*) filter (where s.settled_at > clock_timestamp() - $2::float8 * interval '1 millisecond'))::integer as blocks
    from (select settled_at from settlements where holder = $1 order by block desc limit ${LATEST_BLOCKS}) s`,
};

export async function settledLately(db: Queries, processId: string, withinMs: number): Promise<boolean> {
  return numberIn(await firstRow(db, { ...SETTLED_LATELY, values: [processId, withinMs] }), 'blocks') > 0;
}
