/** Amounts of money, which are decimal texts: no number can hold all of them exactly. */

const DECIMAL = /^-?\d+(?:\.\d+)?$/;
/** Amounts below this many units are shown with the digits that distinguish them. */
const SMALL = 0.01;

const formats = new Map<string, Intl.NumberFormat>();

/**
 * @param amount `12.5`
 * @param currency `USD`; undefined: not known, so the amount has no unit
 * @returns `$12.50`, `$0.0125`; a smaller amount with three significant digits, such as `$0.00123`
 */
export function money(amount: string, currency: string | undefined): string {
  if (!isDecimal(amount)) return amount;
  const size = Math.abs(Number(amount));
  return formatOf(currency, size === 0 || size >= 1 ? 'large' : size >= SMALL ? 'cents' : 'small').format(amount);
}

/** Reports whether a text is a decimal number without an exponent. */
export function isDecimal(text: string): text is `${number}` {
  return DECIMAL.test(text);
}

const DIGITS = {
  large: { minimumFractionDigits: 2, maximumFractionDigits: 2 },
  cents: { minimumFractionDigits: 2, maximumFractionDigits: 4 },
  small: { maximumSignificantDigits: 3 },
} as const;

function formatOf(currency: string | undefined, size: keyof typeof DIGITS): Intl.NumberFormat {
  const key = `${currency} ${size}`;
  const known = formats.get(key);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat('en', {
    ...(currency === undefined ? {} : { style: 'currency', currency }),
    ...DIGITS[size],
  });
  formats.set(key, made);
  return made;
}
