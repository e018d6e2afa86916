/** The tables of a page in `docs/`, by the heading above each. */

import { pageText } from './guides.ts';

/** Returns the rows of the first table after a heading: each cell by the name of its column, without backticks. */
export function tableOf(page: string, heading: string): readonly Readonly<Record<string, string>>[] {
  const [, section = ''] = pageText(page).split(`\n## ${heading}\n`);
  const lines =
    section
      .split('\n## ')[0]
      ?.split('\n')
      .filter((line) => line.startsWith('|')) ?? [];
  const [head, , ...rows] = lines.map(cellsOf);
  if (head === undefined) throw new Error(`${page}.md has no table after the heading ${heading}`);
  return rows.map((cells) => Object.fromEntries(head.map((name, i) => [name, cells[i] ?? ''])));
}

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('`', ''));
}
