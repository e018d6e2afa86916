/** The cost that a request may have, for its reservation. */

import type { Price } from '../decision/prices.ts';
import type { ReservedTokens } from './admission.ts';

const PER_TOKENS = 1_000_000;

/**
 * Returns the cost of a prompt and an answer in 10^-9 of the currency, rounded up, at most the largest safe integer. It
 * is exact without large integers: the product of a number of tokens and a price is split into products that a number
 * represents exactly.
 */
export function estimatedCost({ input, output }: Price, { prompt, answer }: ReservedTokens): number {
  const rest = restOf(prompt, input) + restOf(answer, output);
  const cost = wholeOf(prompt, input) + wholeOf(answer, output) + Math.ceil(rest / PER_TOKENS);
  return Math.min(cost, Number.MAX_SAFE_INTEGER);
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
