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

/** The tokens that a request spent, or may spend. `cached` and `cacheWrite` are parts of `prompt`. */
export interface PricedTokens {
  readonly prompt: number;
  readonly completion: number;
  /** Default: 0, here and below. */
  readonly cached?: number;
  readonly cacheWrite?: number;
  /** Tokens beyond `prompt` and `completion` together cost as much as input. */
  readonly total?: number;
}

const PER_TOKENS = 1_000_000;

/**
 * Returns the cost in 10^-9 of the currency, rounded up, at most the largest safe integer. It is exact without large
 * integers: the product of a number of tokens and a price is split into products that a number represents exactly.
 */
export function costOf(
  price: Price,
  { prompt, completion, cached = 0, cacheWrite = 0, total = 0 }: PricedTokens,
): number {
  const ofCache = Math.min(prompt, cached);
  const ofWrite = Math.min(prompt - ofCache, cacheWrite);
  const input = prompt - ofCache - ofWrite + Math.max(0, total - prompt - completion);
  const whole =
    wholeOf(input, price.input) +
    wholeOf(ofCache, price.cachedInput) +
    wholeOf(ofWrite, price.cacheWrite) +
    wholeOf(completion, price.output);
  const rest =
    restOf(input, price.input) +
    restOf(ofCache, price.cachedInput) +
    restOf(ofWrite, price.cacheWrite) +
    restOf(completion, price.output);
  return Math.min(whole + Math.ceil(rest / PER_TOKENS), Number.MAX_SAFE_INTEGER);
}

/** Returns a part of `tokens * price / 10^6` that is a whole number; `restOf` returns 10^6 times the other part. */
function wholeOf(tokens: number, price: number): number {
  const tokensRest = tokens % PER_TOKENS;
  const priceRest = price % PER_TOKENS;
  return tokens * ((price - priceRest) / PER_TOKENS) + ((tokens - tokensRest) / PER_TOKENS) * priceRest;
}

function restOf(tokens: number, price: number): number {
  return (tokens % PER_TOKENS) * (price % PER_TOKENS);
}
