/** Statements of the guides that the code or a public type can disprove. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ERRORS } from '../../src/domain/errors.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const GUIDES = readdirSync(DOCS)
  .filter((name) => name.endsWith('.md'))
  .map((name): [string, string] => [name, readFileSync(join(DOCS, name), 'utf8')]);
/** The codes of the decision log besides the error codes. */
const OTHER_CODES = ['allow', 'public'];
/** Gateway API before 1.7 has a uint16 there. */
const LARGEST_FORWARD_BODY = 65_535;

it('every code in an example of a guide is one that the server answers or logs', () => {
  const codes = GUIDES.flatMap(([guide, text]) =>
    [...text.matchAll(/"code": ?"([^"]*)"/g)].map(([, code = '']) => ({ guide, code })),
  );
  expect(codes.map(({ guide }) => guide)).toContain('decision-log.md');
  expect(codes.filter(({ code }) => !(code in ERRORS || OTHER_CODES.includes(code)))).toEqual([]);
});

it('a guide that forwards bodies beyond 16 bits names the limit of older implementations of Gateway API at that line', () => {
  const lines = GUIDES.flatMap(([, text]) =>
    [...text.matchAll(/^(.*)\n.*forwardBody: \{ maxSize: (\d+) \}/gm)].map(([, above = '', size]) => ({
      above,
      size: Number(size),
    })),
  );
  expect(lines).not.toEqual([]);
  for (const { above, size } of lines)
    if (size > LARGEST_FORWARD_BODY) expect(above).toContain(`# At most ${LARGEST_FORWARD_BODY} `);
});
