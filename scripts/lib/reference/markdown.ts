/** Returns a text that does not end a cell of a Markdown table. */
export function tableCell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replaceAll('\n', ' ')
    .replaceAll(/[<>]/g, (c) => (c === '<' ? '&lt;' : '&gt;'));
}
