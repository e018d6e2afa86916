/** Returns a text that does not end a cell of a Markdown table. */
export function tableCell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .replaceAll(/[<>]/g, (c) => (c === '<' ? '&lt;' : '&gt;'));
}

/** Returns a Markdown table. The cells must not end a cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/**
 * Returns the page with new tables between `<!-- table: NAME (written by npm run docs) -->` and `<!-- end of table
 * -->`.
 */
export function withTables(page: string, tables: Readonly<Record<string, string>>): string {
  return Object.entries(tables).reduce((text, [name, content]) => {
    const begin = `<!-- table: ${name} (written by npm run docs) -->\n`;
    const end = '\n<!-- end of table -->';
    const [before, rest, ...more] = text.split(begin);
    if (before === undefined || rest === undefined || more.length > 0) throw new Error(`one table ${name} is expected`);
    return `${before}${begin}${content}${rest.slice(rest.indexOf(end))}`;
  }, page);
}
