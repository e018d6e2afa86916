/** Prices of models, and the cost of a request in integers. */

import type { PriceList } from '../domain/records.ts';
import { MostSpecific } from './specificity.ts';

/** The price of one model, in 10^-9 of the currency for 10^6 tokens. */
export interface Price {
  /** The version of the list that has it. */
  readonly version: number;
  readonly input: number;
  readonly output: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
}

export interface PriceTable {
  readonly version: number;
  /** Returns undefined for a model without a price, which costs nothing. */
  of(model: string): Price | undefined;
}

export function compilePrices({ version, prices }: PriceList): PriceTable {
  const table = new MostSpecific(
    prices.map(({ models, input, output, cachedInput = input, cacheWrite = input }) => [
      models,
      Object.freeze({ version, input, output, cachedInput, cacheWrite }),
    ]),
  );
  return Object.freeze({ version, of: (model: string) => table.find(model) });
}

export const NO_PRICES: PriceTable = compilePrices({ version: 0, prices: [] });

/** The tokens that a request spent. `cached` and `cacheWrite` are parts of `prompt`. */
export interface PricedTokens {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
  readonly cacheWrite: number;
  /** Tokens beyond `prompt` and `completion` together cost as much as input. */
  readonly total: number;
}

const PER_TOKENS = 1_000_000n;

/** Returns the cost in 10^-9 of the currency, rounded up, at most the largest safe integer. */
export function costOf(price: Price, { prompt, completion, cached, cacheWrite, total }: PricedTokens): number {
  const ofCache = Math.min(prompt, cached);
  const ofWrite = Math.min(prompt - ofCache, cacheWrite);
  const input = prompt - ofCache - ofWrite + Math.max(0, total - prompt - completion);
  const sum =
    BigInt(input) * BigInt(price.input) +
    BigInt(ofCache) * BigInt(price.cachedInput) +
    BigInt(ofWrite) * BigInt(price.cacheWrite) +
    BigInt(completion) * BigInt(price.output);
  const cost = (sum + PER_TOKENS - 1n) / PER_TOKENS;
  return cost > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(cost);
}
