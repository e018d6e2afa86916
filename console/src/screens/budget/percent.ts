/** Thresholds of alerts: the form has percent, the API fractions. */

/** Binary fractions add digits beyond these. */
const DIGITS = 6;

export function percentOf(fraction: number): string {
  return String(Number((fraction * 100).toFixed(DIGITS)));
}

export function fractionOf(percent: string): number {
  return Number((Number(percent) / 100).toFixed(DIGITS + 2));
}
