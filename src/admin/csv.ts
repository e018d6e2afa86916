/** Rows as CSV (RFC 4180), made so that a spreadsheet takes every cell for what it is: a text, or a number. */

/** @param cells null = empty */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

/** What spreadsheets run as a formula: people choose their names, and a failed login writes down whatever was typed. */
const FORMULA = /^[\s\0]*[=+\-@\t\r|%]/;

function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const harmless = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(harmless) || harmless !== value ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
