/** Prices that an administrator may accept, compared with the list in force. */

import type { PriceRule } from '../../domain/records.ts';
import { readPrices } from '../../store/price-lists.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { PriceParts } from './prices.ts';
import { type ReleaseTable, readReleaseTable, type TablePrice } from './release-table.ts';
import { byGlob, priceResource, samePrice } from './rules.ts';
import type { PriceProposalReport, ProposalQuery, ProposedPrice } from './schemas.ts';

export async function proposePrices(
  parts: Pick<AdminParts, 'db'> & PriceParts,
  query: ProposalQuery,
): Promise<PriceProposalReport> {
  const { version, prices } = await readPrices(parts.db.knex);
  const table = await readReleaseTable();
  const currentOf = byGlob(prices);
  return {
    version,
    currency: parts.prices.currency,
    source: table.source,
    providers: [...table.providers],
    data: selectPrices(table, query).map((price): ProposedPrice => {
      const current = currentOf.get(price.models);
      return {
        change: changeOf(price, current),
        provider: price.provider,
        price: priceResource(price),
        current: current === undefined ? null : priceResource(current),
        left_out: [...price.leftOut],
      };
    }),
  };
}

/** Returns the prices that the filters select, one for each glob, in the order of the globs. */
export function selectPrices(table: ReleaseTable, { provider, q = '' }: ProposalQuery): readonly TablePrice[] {
  const wanted = q.toLowerCase();
  const selected = new Map<string, TablePrice>();
  for (const price of table.prices) {
    const { models } = price;
    const isWanted = (provider ?? price.provider) === price.provider && models.toLowerCase().includes(wanted);
    if (isWanted && !selected.has(models)) selected.set(models, price);
  }
  return [...selected.values()].sort((a, b) => (a.models < b.models ? -1 : 1));
}

/** @param current undefined: the list has no price for the glob */
export function changeOf(price: PriceRule, current: PriceRule | undefined): ProposedPrice['change'] {
  if (current === undefined) return 'added';
  return samePrice(price, current) ? 'unchanged' : 'changed';
}
