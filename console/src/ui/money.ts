/** Amounts of money, which are decimal texts: no number can hold all of them exactly. */

const DECIMAL = /^-?\d+(?:\.\d+)?$/;
/** Amounts below one unit are shown with as many digits as tell them apart. */
const SMALL_DIGITS = 3;

const formats = new Map<string, Intl.NumberFormat>();

/**
 * @param amount `12.5`
 * @param currency `USD`; undefined: not known, so the amount has no unit
 * @returns `$12.50`; an amount below one unit with three significant digits, such as `$0.0123`
 */
export function money(amount: string, currency: string | undefined): string {
  if (!isDecimal(amount)) return amount;
  const isSmall = Math.abs(Number(amount)) < 1 && Number(amount) !== 0;
  return formatOf(currency, isSmall).format(amount);
}

/** Reports whether a text is a decimal number without an exponent. */
export function isDecimal(text: string): text is `${number}` {
  return DECIMAL.test(text);
}

function formatOf(currency: string | undefined, isSmall: boolean): Intl.NumberFormat {
  const key = `${currency} ${isSmall}`;
  const known = formats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat('en', {
    ...(currency === undefined ? {} : { style: 'currency', currency }),
    ...(isSmall
      ? { maximumSignificantDigits: SMALL_DIGITS, minimumSignificantDigits: 2 }
      : { minimumFractionDigits: 2, maximumFractionDigits: 2 }),
  });
  formats.set(key, made);
  return made;
}
