/** Money: integers of 10^-9 of the installation's currency. No floating point touches an amount. */

export const NANO = 1_000_000_000n;
/** The largest limit of a budget, in units of the currency: an amount that a number represents exactly. */
export const MAX_MONEY = 9_000_000;

const MONEY_PLACES = 9;
const DECIMAL = /^(0|[1-9][0-9]{0,11})(?:\.([0-9]+))?$/;

/**
 * Parses a decimal text such as `12.50` as an integer of 10^-`places`.
 * @returns undefined for any other text, and for more places
 */
export function parseMoney(text: string, places = MONEY_PLACES): bigint | undefined {
  const match = DECIMAL.exec(text);
  if (match === null) return undefined;
  const [, whole = '0', fraction = ''] = match;
  return fraction.length > places ? undefined : BigInt(whole + fraction.padEnd(places, '0'));
}

/** Returns the shortest decimal text with at least two places: `12.50`, `0.000000075`, `-3.00`. */
export function formatMoney(nano: bigint): string {
  const sign = nano < 0n ? '-' : '';
  const amount = nano < 0n ? -nano : nano;
  const places = String(amount % NANO)
    .padStart(9, '0')
    .replace(/0{1,7}$/, '');
  return `${sign}${amount / NANO}.${places}`;
}
