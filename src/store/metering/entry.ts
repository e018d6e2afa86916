import type { Settlement } from '../../metering/ports.ts';

type Entry = Omit<Settlement, 'collections' | 'collection' | 'response'> &
  Partial<Pick<Settlement, 'collections' | 'collection' | 'response'>>;

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
    total_tokens: settlement.total,
    cost: settlement.cost,
    price_version: settlement.priceVersion,
    charges: settlement.charges,
    estimated,
    books,
    collections: settlement.collections,
    collection: settlement.collection,
    response: settlement.response,
  };
}
