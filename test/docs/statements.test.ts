/** Statements of the guides that the code or a public type can disprove. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ERRORS } from '../../src/domain/errors.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const GUIDES = readdirSync(DOCS)
  .filter((name) => name.endsWith('.md'))
  .map((name): [string, string] => [name, readFileSync(join(DOCS, name), 'utf8')]);
const ROOT = join(DOCS, '..');
/** Every page with links, by its path in the project. */
const PAGES = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'client/README.md']
  .concat(GUIDES.map(([name]) => `docs/${name}`))
  .map((path): [string, string] => [path, readFileSync(join(ROOT, path), 'utf8')]);

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.*)$/gm);
  const slugs = [...headings].map(([, heading = '']) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(slugs.map((slug, i) => (slugs.indexOf(slug) === i ? slug : `${slug}-${i}`)));
}

/** The codes of the decision log besides the error codes. */
const OTHER_CODES = ['allow', 'public'];
/** Gateway API before 1.7 has a uint16 there. */
const LARGEST_FORWARD_BODY = 65_535;

it.each(PAGES)('every link of %s leads to a file, and to a heading of it', (path, text) => {
  const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? join(ROOT, path) : join(ROOT, path, '..', file);
    if (!existsSync(target)) return true;
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(readFileSync(target, 'utf8')).has(anchor);
  });
  expect(broken).toEqual([]);
});

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
