import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { csvLine } from '../../src/iam/list/csv.ts';
import { runs } from '../support/properties.ts';

/** RFC 4180 read back by hand: one line of quoted or plain cells. */
function cellsOf(line: string): readonly string[] {
  const cells: string[] = [];
  let rest = line.replace(/\r\n$/, '');
  for (;;) {
    const [whole = '', quoted, plain = ''] = /^(?:"((?:[^"]|"")*)"|([^",]*))/.exec(rest) ?? [];
    cells.push(quoted?.replaceAll('""', '"') ?? plain);
    rest = rest.slice(whole.length);
    if (rest === '') return cells;
    rest = rest.slice(1);
  }
}

const cellOf = (text: string): string | undefined => cellsOf(csvLine([text]))[0];

describe('a CSV cell', () => {
  const starts = ['=', '+', '-', '@', '|', '%'];
  const wide = ['\uff1d', '\uff0b', '\uff0d', '\uff20', '\uff5c', '\uff05'];
  const others = [
    '\ufe62',
    '\ufe63',
    '\ufe66',
    '\ufe6b',
    '\ufe6a',
    '\u207a',
    '\u207b',
    '\u207c',
    '\u208a',
    '\u208b',
    '\u208c',
    '\u2212',
    '\u2a75',
  ];
  const before = [
    '',
    ' ',
    '  ',
    '\u00a0',
    '\u3000',
    '\ufeff',
    '\u200b',
    '\u0000',
    '\u0001',
    '\u0301',
    '\u202e',
    '\u2028',
  ];

  test.each([...starts, ...wide, ...others])(
    'that begins with %j is text, also after invisible characters',
    (start) => {
      for (const prefix of before) {
        const text = `${prefix}${start}HYPERLINK("https://evil.example")`;
        expect(cellOf(text), JSON.stringify(text)).toBe(`'${text}`);
      }
    },
  );

  test.each(['\t', '\r', '\n', ' \t', '\ufeff\r'])(
    'that begins with %j is text: the characters behind it may begin a cell',
    (start) => {
      expect(cellOf(`${start}1`)).toBe(`'${start}1`);
    },
  );

  test.each(['', 'Ada', 'a=1', '1+1', 'a@b.example', '"=1"', "'=1", '\u5f20\u4f1f', '2026-11-18', '{"a":"=1"}', '*'])(
    '%j is written as it is',
    (text) => {
      expect(cellOf(text)).toBe(text);
    },
  );

  test('never begins a formula, and a naive reader reads it back unchanged except for the apostrophe', () => {
    const signs = fc.constantFrom(
      ...starts,
      ...wide,
      ...others,
      ...before,
      '\t',
      '\r',
      '\n',
      'a',
      '1',
      '"',
      ',',
      ';',
      "'",
    );
    fc.assert(
      fc.property(
        fc.array(signs, { maxLength: 5 }).map((parts) => parts.join('')),
        (text) => {
          const written = cellOf(text) ?? '';
          expect([text, `'${text}`]).toContain(written);
          const visible = [...written.normalize('NFKC')].find((sign) => !/[\s\p{C}\p{Z}\p{M}]/u.test(sign)) ?? '';
          expect(visible === '' ? '' : visible).not.toMatch(/^[=+\-@|%\u2212]/);
        },
      ),
      { numRuns: runs(3000) },
    );
  });

  test('of a number is the number', () => {
    expect(csvLine([-5, null, 'x'])).toBe('-5,,x\r\n');
  });
});
