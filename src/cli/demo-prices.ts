/** The prices of the demo. One model of its traffic has none, so that the console shows requests without a price. */

import { compilePrices, type PriceTable } from '../decision/prices.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { importPrices } from '../iam/prices/prices.ts';
import { parsePrices } from '../iam/prices/rules.ts';
import { readPrices } from '../store/price-lists.ts';

const PRICES = parsePrices([
  { models: 'llama-3*', input: '0.20', output: '0.60', cached_input: '0.05', per: 1_000_000 },
  { models: 'phi-4', input: '0.07', output: '0.14', per: 1_000_000 },
  { models: 'e5-*', input: '0.02', output: '0', per: 1_000_000 },
]);

/** Sets the prices if no list was ever set. @returns the prices in force */
export async function ensurePrices(parts: AdminParts): Promise<PriceTable> {
  const present = await readPrices(parts.db.knex);
  if (present.version > 0) return compilePrices(present);
  const set = await importPrices(parts, { prices: PRICES, replaces: true, seen: 0 });
  return compilePrices(set ?? (await readPrices(parts.db.knex)));
}
