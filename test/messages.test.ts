/** The wording of messages: the error catalogue, the command line's help, the descriptions of settings, and every sentence in the sources. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { usage } from '../src/cli/commands.ts';
import { ALL_SETTINGS } from '../src/config/settings.ts';
import { ERRORS } from '../src/domain/errors.ts';

const SOURCES = join(import.meta.dirname, '../src');
const FOLDERS = [
  'iam',
  'cli',
  'config',
  'decision',
  'domain',
  'extauthz',
  'identity',
  'credential-cache',
  'metering',
  'server',
  'telemetry',
];

/** Wordings without a subject or without a meaning that a reader can look up. */
const UNCLEAR =
  /\b(nobody|somebody|whoever|whatever|anew|meanwhile|is (told|asked|heard|said)|there is no such|exists already|all the same|in vain|hangs on|stands (by|for)|none but|but for|for ever|unless told|(?<!=)people)\b|^What\b|\b(tenants?|users?|roles?|policies|administrators|keys|digits) alone\b/i;

/** A comment on a line of its own is no message. */
const COMMENT = /^\s*(\/\/|\/?\*)/;
const LITERAL = /'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g;

/** Returns the string literals of at least three words, one for each line of the source that has it. */
function sentencesOf(source: string): readonly string[] {
  return source
    .split('\n')
    .filter((line) => !COMMENT.test(line))
    .flatMap((line) =>
      [...line.matchAll(LITERAL)].map(([, single, double, template]) => single ?? double ?? template ?? ''),
    )
    .filter((text) => text.trim().split(/\s+/).length >= 3);
}

function unclear(texts: readonly string[]): readonly string[] {
  return texts.filter((text) => UNCLEAR.test(text));
}

describe('no message uses an unclear wording', () => {
  it('in the titles of the error catalogue', () => {
    const titles = Object.values(ERRORS).map(({ title }) => title);
    expect(titles.length).toBeGreaterThan(30);
    expect(unclear(titles)).toEqual([]);
  });

  it('in the help of the command line', () => {
    expect(unclear(usage().split('\n'))).toEqual([]);
  });

  it('in the descriptions of settings, each of which is a sentence or a noun phrase with a period', () => {
    const helps = ALL_SETTINGS.map(({ help }) => help);
    expect(unclear(helps)).toEqual([]);
    expect(helps.filter((help) => !/^[A-Z`f].*\.$/s.test(help))).toEqual([]);
  });

  it.each(FOLDERS)('in the sentences of src/%s', (folder) => {
    const files = readdirSync(join(SOURCES, folder), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    );
    const found = files.flatMap((file) =>
      unclear(sentencesOf(readFileSync(join(SOURCES, folder, file), 'utf8'))).map(
        (text) => `${folder}/${file}: ${text}`,
      ),
    );
    expect(files).not.toEqual([]);
    expect(found).toEqual([]);
  });
});

describe('the check of wordings', () => {
  it.each(['There is no such member.', 'The credential proves nobody.', 'What is logged.', 'It begins anew at noon.'])(
    'refuses %j',
    (text) => {
      expect(unclear(sentencesOf(`throw new Error('${text}');`))).toEqual([text]);
    },
  );

  it('skips comments and short texts', () => {
    expect(unclear(sentencesOf("// 'nobody is here'\n * 'nobody is here'\nconst one = 'nobody';"))).toEqual([]);
  });
});
