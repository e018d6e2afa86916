const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** `12,345` */
export function count(n: number): string {
  return whole.format(n);
}

/** `38.2M`; numbers below ten thousand in full. */
export function compact(n: number): string {
  return Math.abs(n) < 10_000 ? whole.format(n) : short.format(n);
}
