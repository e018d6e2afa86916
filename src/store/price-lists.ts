/** The lists of prices. The newest one is in force. */

import { Fault } from '../domain/errors.ts';
import { present } from '../domain/objects.ts';
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

interface StoredList {
  readonly version: number;
  readonly prices: readonly StoredRule[];
  readonly set_at: Date;
}

declare module 'knex/types/tables.js' {
  interface Tables {
    price_lists: StoredList;
  }
}

export interface StoredPriceList extends PriceList {
  readonly setAt: Date | undefined;
}

/** Reads the list in force: version 0 without prices if none was set. */
export async function readPrices(q: Queryable): Promise<StoredPriceList> {
  return listOf(await q('price_lists').select('version', 'prices', 'set_at').orderBy('version', 'desc').first());
}

function listOf(row: StoredList | undefined): StoredPriceList {
  if (row === undefined) return { version: 0, prices: [], setAt: undefined };
  if (!Array.isArray(row.prices)) throw new Fault('the database returned a damaged list of prices');
  return { version: row.version, prices: row.prices.map(ruleOf), setAt: row.set_at };
}

export interface PriceListDate {
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly setAtMs: number;
}

/** Returns the list that was in force at a time, and the later ones, in order. */
export async function priceListDates(q: Queryable, sinceMs: number): Promise<readonly PriceListDate[]> {
  const { rows } = await q.raw<{ rows: { readonly version: number; readonly set_at: Date }[] }>(
    `select version, set_at from price_lists where version >= coalesce(
       (select max(version) from price_lists where set_at <= :since), 0) order by version`,
    { since: new Date(sinceMs) },
  );
  return rows.map(({ version, set_at }) => ({ version, setAtMs: set_at.getTime() }));
}

/** Reads one list; version 0 without prices if there is no such list. */
export async function readPriceList(q: Queryable, version: number): Promise<StoredPriceList> {
  return listOf(await q('price_lists').select('version', 'prices', 'set_at').where({ version }).first());
}

/** Makes other writers wait until the transaction ends. Readers do not wait. */
export async function lockPrices(trx: Queryable): Promise<void> {
  await trx.raw('lock table price_lists in exclusive mode');
}

/** Adds the list that follows `last`. It is in force from the commit. Call it in a transaction, after `lockPrices`. */
export async function addPrices(
  trx: Queryable,
  last: PriceList,
  prices: readonly PriceRule[],
): Promise<StoredPriceList> {
  const version = last.version + 1;
  const { rows } = await trx.raw<{ rows: { readonly set_at: Date }[] }>(
    'insert into price_lists (version, prices) values (:version, cast(:prices as jsonb)) returning set_at',
    { version, prices: JSON.stringify(prices.map(storedOf)) },
  );
  return { version, prices, setAt: rows[0]?.set_at };
}

function ruleOf({ models, input, output, cached_input, cache_write }: StoredRule): PriceRule {
  return { models, input, output, cachedInput: cached_input, cacheWrite: cache_write };
}

function storedOf({ models, input, output, cachedInput, cacheWrite }: PriceRule): StoredRule {
  return { models, input, output, ...present({ cached_input: cachedInput, cache_write: cacheWrite }) };
}
