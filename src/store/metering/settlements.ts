/** The ends of requests: each reservation is booked once, with everything that follows from it, in one statement. */

import type { Settlement, SettleResult } from '../../metering/ports.ts';
import { firstRow, numberIn, type Queries, textsIn } from './statement.ts';

const SETTLE = {
  name: 'metering_settle',
  // In this order: the settler's own reservations are never unknown, also right after a fail-over to a standby that lagged.
  text: `
    select s.booked,
      (select coalesce(json_agg(distinct e.holder), '[]'::json) from jsonb_to_recordset($2::jsonb) as e(holder text)
       where not exists (select from metering_holders h where h.id = e.holder) and e.holder <> $1) as unknown_holders
    from (select metering_beat($1) offset 0) b, lateral metering_settle($1, $2::jsonb) s`,
};

export async function settle(db: Queries, settler: string, settlements: readonly Settlement[]): Promise<SettleResult> {
  const row = await firstRow(db, { ...SETTLE, values: [settler, JSON.stringify(settlements.map(entryOf))] });
  return { booked: numberIn(row, 'booked'), unknownProcesses: textsIn(row, 'unknown_holders') };
}

/** Rows of one holder that are looked at: each stands for 1024 reservations, so these are the last 65,536. */
const LATEST_BLOCKS = 64;

const SETTLED_LATELY = {
  name: 'metering_settled_lately',
  text: `
    select (count(*) filter (where s.settled_at > clock_timestamp() - $2::float8 * interval '1 millisecond'))::integer as blocks
    from (select settled_at from settlements where holder = $1 order by block desc limit ${LATEST_BLOCKS}) s`,
};

/** Reports whether any process settled a reservation of the holder within that time. */
export async function settledLately(db: Queries, processId: string, withinMs: number): Promise<boolean> {
  return numberIn(await firstRow(db, { ...SETTLED_LATELY, values: [processId, withinMs] }), 'blocks') > 0;
}

/** As the type `metering_entry` has it. */
function entryOf(settlement: Settlement, n: number): Readonly<Record<string, unknown>> {
  const { processId, counter, held, period, day, estimated, books } = settlement;
  return {
    n,
    holder: processId,
    counter,
    held,
    tenant_id: settlement.tenant,
    period,
    day,
    model: settlement.model,
    key_id: settlement.key,
    user_id: settlement.user,
    prompt_tokens: settlement.prompt,
    completion_tokens: settlement.completion,
    cached_tokens: settlement.cached,
    total_tokens: settlement.total,
    estimated,
    books,
    collections: settlement.collections ?? null,
    collection: settlement.collection ?? null,
    response: settlement.response ?? null,
  };
}
