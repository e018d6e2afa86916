/** Calendar months as the API writes them: `2026-11`. */

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/;
const DAY_MS = 86_400_000;
const name = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });

export function monthOf(time: number): string {
  return new Date(time).toISOString().slice(0, 7);
}

/** Returns the month `by` months later. An invalid month counts as the current one. */
export function shifted(month: string, by: number): string {
  const [, year, number] = MONTH.exec(month) ?? MONTH.exec(monthOf(Date.now())) ?? [];
  return monthOf(Date.UTC(Number(year), Number(number) - 1 + by, 1));
}

/** `November 2026` */
export function monthName(month: string): string {
  return MONTH.test(month) ? name.format(new Date(`${month}-01T00:00:00Z`)) : month;
}

/** The days of a month as the API writes them: `2026-11-01` first. Empty for what is no month. */
export function daysOf(month: string): readonly string[] {
  if (!MONTH.test(month)) return [];
  const next = shifted(month, 1);
  const length = (Date.parse(`${next}-01T00:00:00Z`) - Date.parse(`${month}-01T00:00:00Z`)) / DAY_MS;
  return Array.from({ length }, (_, i) => `${month}-${String(i + 1).padStart(2, '0')}`);
}
