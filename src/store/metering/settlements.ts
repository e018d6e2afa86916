/** The ends of requests: each reservation is booked once, with everything that follows from it, in one statement. */

import type { Settled, Settlement } from '../../metering/ports.ts';
import { firstRow, numberIn, type Queries } from './statement.ts';

const SETTLE = { name: 'metering_settle', text: 'select booked, unknown from metering_settle($1, $2::jsonb)' };

export async function settle(db: Queries, settler: string, settlements: readonly Settlement[]): Promise<Settled> {
  const row = await firstRow(db, { ...SETTLE, values: [settler, JSON.stringify(settlements.map(entryOf))] });
  return { booked: numberIn(row, 'booked'), unknown: numberIn(row, 'unknown') };
}

/** As the type `metering_entry` has it. */
function entryOf(settlement: Settlement, n: number): Readonly<Record<string, unknown>> {
  const { holder, counter, held, period, day, estimated, books } = settlement;
  return {
    n,
    holder,
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
  };
}
