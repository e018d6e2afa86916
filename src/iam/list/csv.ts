/** Rows as CSV (RFC 4180). A spreadsheet reads every cell as a text or a number, and none as a formula. */

/** @param cells null = empty */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

/** The first characters that spreadsheets read as the beginning of a formula; U+2212 is the minus sign. */
const FORMULA = /^[=+\-@|%\u2212]/;
/** White space, controls, marks and invisible characters, such as a byte order mark. A spreadsheet may skip them. */
const SKIPPED = /^[\s\p{C}\p{Z}\p{M}]*/u;
/** Some spreadsheets end a cell at a tab or a line break, so that the text after it begins another cell. */
const ENDS_CELL = /[\t\r\n]/;

/**
 * Reports whether a spreadsheet may run the text as a formula. Users choose their names, and the audit log stores the
 * username of a failed login. Some spreadsheets read a full-width or small form (`＝`, `﹢`) as its ASCII character, so
 * the test uses the compatibility form.
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
