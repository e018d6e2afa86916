import type { Price } from '../../decision/prices.ts';
import type { Charge, Settlement } from '../../metering/ports.ts';

type Optional = 'collections' | 'collection' | 'response' | 'price';
type Entry = Omit<Settlement, Optional> & Partial<Pick<Settlement, Optional>>;

/** Returns a charge as the database's type `metering_entry` has it: the first letter of the unit, and the period. */
export function chargeWord({ unit, period }: Charge): string {
  return unit.charAt(0) + period;
}

function priceNumbers({ version, input, output, cachedInput, cacheWrite }: Price): readonly number[] {
  return [version, input, output, cachedInput, cacheWrite];
}

/**
 * Returns the settlement with the members of the database's type `metering_entry`. A member that JSON omits is null
 * there.
 */
export function meteringEntry(settlement: Entry, n: number): Readonly<Record<string, unknown>> {
  const { processId, counter, held, tenant, period, day, model, key, user, estimated, books } = settlement;
  return {
    n,
    holder: processId,
    counter,
    held,
    tenant_id: tenant,
    period,
    day,
    model,
    key_id: key,
    user_id: user,
    prompt_tokens: settlement.prompt,
    completion_tokens: settlement.completion,
    cached_tokens: settlement.cached,
    cache_write_tokens: settlement.cacheWrite,
    total_tokens: settlement.total,
    cost: settlement.cost,
    price_version: settlement.priceVersion,
    price: settlement.price === undefined ? undefined : priceNumbers(settlement.price),
    charges: settlement.charges.map(chargeWord),
    estimated,
    books,
    collections: settlement.collections,
    collection: settlement.collection,
    response: settlement.response,
  };
}
