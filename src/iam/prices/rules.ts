/** Prices as requests and responses have them, and as integers of 10^-9 of the currency for 10^6 tokens. */

import { validateModel } from '../../decision/validate.ts';
import { formatMoney, MAX_MONEY, parseMoney } from '../../domain/money.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import type { PriceRule } from '../../domain/records.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import type { Per, PriceRequest, PriceResource } from './schemas.ts';

/** The decimal places of an amount that is an integer of 10^-9 for 10^6 tokens. */
const PLACES: Readonly<Record<Per, number>> = { 1: 15, 1000: 12, 1000000: 9 };

const AMOUNTS = ['input', 'output', 'cached_input', 'cache_write'] as const;

/** @throws Refusal `invalid_field` for a glob that is invalid or repeated, and for an amount that is not exact */
export function parsePrices(requests: readonly PriceRequest[]): readonly PriceRule[] {
  const globs = new Map<string, number>();
  const errors: FieldError[] = [];
  const rules = requests.map((request, i) => {
    const at = `/prices/${i}`;
    const first = globs.get(request.models);
    if (first === undefined) globs.set(request.models, i);
    else errors.push({ path: `${at}/models`, message: `Must not repeat the glob of /prices/${first}.` });
    errors.push(...validateModel(request.models, `${at}/models`));
    return parsePrice(request, at, errors);
  });
  throwIfInvalid(errors);
  return rules;
}

function parsePrice(request: PriceRequest, at: string, errors: FieldError[]): PriceRule {
  const [input = 0, output = 0, cachedInput, cacheWrite] = AMOUNTS.map((name) => {
    const text = request[name];
    if (text === undefined) return undefined;
    const amount = parseMoney(text, PLACES[request.per]);
    if (amount !== undefined && amount <= BigInt(MAX_MONEY) * 1_000_000_000n) return Number(amount);
    errors.push({ path: `${at}/${name}`, message: amountMessage(request.per) });
    return undefined;
  });
  return { models: request.models, input, output, cachedInput, cacheWrite };
}

function amountMessage(per: Per): string {
  const tokens = per === 1 ? '1 token' : `${per.toLocaleString('en-US')} tokens`;
  const most = MAX_MONEY / (1_000_000 / per);
  return `Must be a decimal number of at most ${most.toLocaleString('en-US')} with at most ${PLACES[per]} places, as the price of ${tokens}.`;
}

export function priceResource({ models, input, output, cachedInput, cacheWrite }: PriceRule): PriceResource {
  return {
    models,
    input: amountText(input),
    output: amountText(output),
    ...(cachedInput === undefined ? {} : { cached_input: amountText(cachedInput) }),
    ...(cacheWrite === undefined ? {} : { cache_write: amountText(cacheWrite) }),
    per: 1_000_000,
  };
}

const amountText = (amount: number): string => formatMoney(BigInt(amount));

export function samePrice(a: PriceRule, b: PriceRule): boolean {
  return (
    a.models === b.models &&
    a.input === b.input &&
    a.output === b.output &&
    a.cachedInput === b.cachedInput &&
    a.cacheWrite === b.cacheWrite
  );
}

export function byGlob(prices: readonly PriceRule[]): ReadonlyMap<string, PriceRule> {
  return new Map(prices.map((price) => [price.models, price]));
}

/** Returns the list with the other prices. A price replaces the one of the same glob. */
export function mergePrices(list: readonly PriceRule[], others: readonly PriceRule[]): readonly PriceRule[] {
  return [...new Map([...list, ...others].map((price) => [price.models, price])).values()];
}
