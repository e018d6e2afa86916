/** The options of commands follow from the usage text that people read. */

import { expect, it } from 'vitest';
import { parseArguments, timeOption, UsageError } from '../../src/cli/arguments.ts';
import { COMMANDS, optionsOf, readsWords, usage } from '../../src/cli/commands.ts';

it('an option that the usage text shows with a word takes a value, and another one is a flag', () => {
  expect(optionsOf({ takes: 'FILE|- [--dry-run [--exit-code]] [--only gate|api] --notice DURATION [--yes]' })).toEqual({
    config: 'value',
    'dry-run': 'flag',
    'exit-code': 'flag',
    only: 'value',
    notice: 'value',
    yes: 'flag',
  });
});

it.each([
  ['FILE|- [--dry-run] [--yes]', true],
  ['[--directory NAME] USERNAME', true],
  ['[NAMESPACE/GATEWAY...] [--dump FILE|-]', true],
  ['-f FILE|- [--prune]', false],
  ['[--only gate|api] --admin HOST:PORT', false],
  ['--subject WHO | --credential TEXT, --method M', false],
])('a command with the usage text %s accepts other words than options: %s', (takes, accepts) => {
  expect(readsWords({ takes })).toBe(accepts);
});

it.each(COMMANDS.map((command) => [command.words.join(' '), command] as const))(
  '%s accepts exactly the options of its usage text',
  (_, command) => {
    const options = optionsOf(command);
    const shown = [...usage([command]).matchAll(/ \[?(?:--([a-z-]+)|-([a-z])\b)/g)].map(
      ([, long, short]) => long ?? short ?? '',
    );
    const inSummary = [...command.summary.matchAll(/--([a-z-]+)/g)].map(([, name]) => name ?? '');
    expect(new Set(Object.keys(options))).toEqual(new Set(['config', ...shown]));
    expect(inSummary.filter((name) => !(name in options))).toEqual([]);
    for (const [name, kind] of Object.entries(options)) {
      const dashed = name.length === 1 ? `-${name}` : `--${name}`;
      const args = parseArguments(kind === 'value' ? [dashed, 'x'] : [dashed], options, false);
      expect(kind === 'value' ? args.value(name) : args.flag(name)).toBe(kind === 'value' ? 'x' : true);
    }
    expect(() => parseArguments(['--unknown'], options, false)).toThrow(UsageError);
  },
);

it('--time is an RFC 3339 time with a zone, and no other form of a date', () => {
  const timeOf = (text: string) => timeOption(parseArguments(['--time', text], { time: 'value' }, false));
  for (const text of ['2026-11-30T12:00:00Z', '2026-11-30T12:00:00.5+01:00', '2028-02-29T23:59:59Z'])
    expect(timeOf(text)).toBe(text);
  for (const text of [
    '2026-11-30',
    '2026-11-30T12:00:00',
    '2026-13-30T12:00:00Z',
    '2026-02-30T12:00:00Z',
    '2026-11-30T24:00:00Z',
    'Nov 30 2026',
    '5',
    '',
  ])
    expect(() => timeOf(text)).toThrow(UsageError);
});
