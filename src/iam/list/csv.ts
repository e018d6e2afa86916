/** Rows as CSV (RFC 4180), made so that a spreadsheet takes every cell for what it is: a text, or a number. */

/** @param cells null = empty */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

/** The first characters that spreadsheets read as the beginning of a formula; U+2212 is the minus sign. */
const FORMULA = /^[=+\-@|%\u2212]/;
/** White space, controls, marks and characters that nobody sees, such as a byte order mark: a spreadsheet may skip them. */
const SKIPPED = /^[\s\p{C}\p{Z}\p{M}]*/u;
/** A tab or a line break ends a cell in some spreadsheets, so the text behind it begins one. */
const ENDS_CELL = /[\t\r\n]/;

/**
 * Reports whether a spreadsheet may run the text: people choose their names, and a failed login stores the name that was typed. Some
 * spreadsheets read a full-width or small form (`＝`, `﹢`) as its ASCII character, so the test looks at the compatibility form.
 */
function isFormula(text: string): boolean {
  const skipped = SKIPPED.exec(text)?.[0] ?? '';
  const [first = ''] = text.slice(skipped.length);
  return ENDS_CELL.test(skipped) || FORMULA.test(first.normalize('NFKC'));
}

function cell(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const harmless = isFormula(value) ? `'${value}` : value;
  return /[",\r\n]/.test(harmless) || harmless !== value ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
