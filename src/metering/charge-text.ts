/**
 * The text with which a check's answer carries the price of its model and the budgets that the request's end is booked
 * to. Envoy's access log returns it to any process.
 *
 * `p<version>,<input>,<output>,<cachedInput>,<cacheWrite>` (absent if the model has no price), then one word for each
 * budget: the first letter of its unit and its `Charge.period`. Semicolons separate the words.
 */

import type { Price } from '../decision/prices.ts';
import { BUDGET_UNITS, type BudgetUnit } from '../domain/records.ts';
import type { Charge } from './ports.ts';

/** The price of a request's model, and the amounts to which its end is booked. */
export interface Charges {
  /** Undefined: the model has no price. */
  readonly price: Price | undefined;
  readonly charges: readonly Charge[];
}

export const NO_CHARGES: Charges = Object.freeze({ price: undefined, charges: Object.freeze([]) });

/** The longest text of charges, in characters. */
export const MAX_CHARGES_TEXT = 8192;
/**
 * The largest number of budgets that a text carries. More than those of a request that writes admit: roles that a login
 * gives may add some.
 */
export const MAX_CHARGES = 64;

const PRICE = /^p(\d{1,10}),(\d{1,16}),(\d{1,16}),(\d{1,16}),(\d{1,16})$/;
const PERIOD = /^bud_[0-9a-z]{26}(?:\/[a-z]{3}_[0-9a-z]{26})? [0-9A-Za-z+-]{1,24}#\d{1,10}$/;
const UNIT_OF: ReadonlyMap<string, BudgetUnit> = new Map(BUDGET_UNITS.map((unit) => [unit.charAt(0), unit]));

/** Returns undefined if there is nothing to carry. */
export function chargeText({ price, charges }: Charges): string | undefined {
  const words = charges.map(({ unit, period }) => unit.charAt(0) + period);
  if (price !== undefined) words.unshift(priceWord(price));
  return words.length === 0 ? undefined : words.join(';');
}

function priceWord({ version, input, output, cachedInput, cacheWrite }: Price): string {
  return `p${[version, input, output, cachedInput, cacheWrite].join(',')}`;
}

export function readCharges(text: string): Charges | undefined {
  if (text.length > MAX_CHARGES_TEXT) return undefined;
  const words = text.split(';');
  const price = words[0]?.startsWith('p') === true ? readPrice(words[0]) : undefined;
  if (words[0]?.startsWith('p') === true) {
    if (price === undefined) return undefined;
    words.shift();
  }
  if (words.length > MAX_CHARGES) return undefined;
  const charges: Charge[] = [];
  for (const word of words) {
    const unit = UNIT_OF.get(word.charAt(0));
    const period = word.slice(1);
    if (unit === undefined || !PERIOD.test(period)) return undefined;
    charges.push({ unit, period });
  }
  return { price, charges };
}

function readPrice(word: string): Price | undefined {
  const match = PRICE.exec(word);
  if (match === null) return undefined;
  const [version = 0, input = 0, output = 0, cachedInput = 0, cacheWrite = 0] = match.slice(1).map(Number);
  const price = { version, input, output, cachedInput, cacheWrite };
  return Object.values(price).every(Number.isSafeInteger) ? price : undefined;
}
