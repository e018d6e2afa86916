/** The lists of prices. The newest one is in force. */

import { Fault } from '../domain/errors.ts';
import type { PriceList, PriceRule } from '../domain/records.ts';
import type { Queryable } from './queryable.ts';

/** A rule as stored: integers in 10^-9 of the currency for 10^6 tokens. */
interface StoredRule {
  readonly models: string;
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number;
  readonly cache_write?: number;
}

declare module 'knex/types/tables.js' {
  interface Tables {
    price_lists: { readonly version: number; readonly prices: readonly StoredRule[]; readonly set_at: Date };
  }
}

/** A list, and when it was set. */
export interface StoredPriceList extends PriceList {
  readonly setAt: Date | undefined;
}

/** Reads the list in force: version 0 without prices if none was set. */
export async function readPrices(q: Queryable): Promise<StoredPriceList> {
  const row = await q('price_lists').select('version', 'prices', 'set_at').orderBy('version', 'desc').first();
  if (row === undefined) return { version: 0, prices: [], setAt: undefined };
  if (!Array.isArray(row.prices)) throw new Fault('the database returned a damaged list of prices');
  return { version: row.version, prices: row.prices.map(ruleOf), setAt: row.set_at };
}

/** Adds a list, which is in force from its commit. Call it in a transaction. @returns its version */
export async function addPrices(trx: Queryable, prices: readonly PriceRule[]): Promise<number> {
  // Two writers would choose the same version: the later one waits.
  await trx.raw('lock table price_lists in exclusive mode');
  const version = (await readPrices(trx)).version + 1;
  await trx.raw('insert into price_lists (version, prices) values (:version, cast(:prices as jsonb))', {
    version,
    prices: JSON.stringify(prices.map(storedOf)),
  });
  return version;
}

function ruleOf({ models, input, output, cached_input, cache_write }: StoredRule): PriceRule {
  return { models, input, output, cachedInput: cached_input, cacheWrite: cache_write };
}

function storedOf({ models, input, output, cachedInput, cacheWrite }: PriceRule): StoredRule {
  return {
    models,
    input,
    output,
    ...(cachedInput === undefined ? {} : { cached_input: cachedInput }),
    ...(cacheWrite === undefined ? {} : { cache_write: cacheWrite }),
  };
}
