import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileConditions } from '../../src/decision/conditions.ts';
import {
  isResourcePattern,
  parseConditions,
  parseConstraints,
  validateConstraints,
  validateKeyConstraints,
  validatePatterns,
  validateResourcePatterns,
  validateTimezone,
} from '../../src/decision/validate.ts';
import type { FieldError } from '../../src/domain/problem-details.ts';
import { DAY_NAMES } from '../../src/domain/records.ts';
import { runs } from '../support/properties.ts';

function validateConditions(value: unknown): readonly FieldError[] {
  const parsed = parseConditions(value);
  return parsed.kind === 'ok' ? [] : parsed.errors;
}

const paths = (errors: readonly { path: string }[]) => errors.map((error) => error.path);

/** Globs at the bounds and beyond them. */
const BOUNDARIES: readonly (readonly [string, boolean])[] = [
  ['x'.repeat(256), true],
  ['x'.repeat(257), false],
  ['😀'.repeat(256), true],
  ['😀'.repeat(257), false],
  [`${'x'.repeat(255)}*`, true],
  ['*'.repeat(8), true],
  ['*'.repeat(9), false],
  [`${'*a'.repeat(8)}b`, true],
  [`${'*a'.repeat(9)}b`, false],
];

describe('patterns', () => {
  test('each entry at fault is named', () => {
    expect(paths(validatePatterns(['chat:*', 'cha*:read', 7], '/permissions'))).toEqual([
      '/permissions/1',
      '/permissions/2',
    ]);
    expect(paths(validatePatterns('chat:*', '/permissions'))).toEqual(['/permissions']);
    expect(validatePatterns([], '/permissions')).toEqual([]);
    expect(paths(validatePatterns(new Array(1001).fill('*'), '/scopes'))).toEqual(['/scopes']);
  });

  test('resources are * or a known kind and a glob', () => {
    expect(validateResourcePatterns(['*', 'models/*', 'collections/hr-*', 'agents/a'], '/resources')).toEqual([]);
    expect(
      paths(validateResourcePatterns(['models', 'models/', 'planets/x', 'models/\u0000'], '/resources')),
    ).toHaveLength(4);
    expect(paths(validateResourcePatterns(['models*', 'modelsx', 'agents1'], '/resources'))).toHaveLength(3);
  });

  test('a glob has at most 256 characters and 8 stars', () => {
    for (const [glob, accepted] of BOUNDARIES)
      expect([glob, isResourcePattern(`collections/${glob}`)]).toEqual([glob, accepted]);
    expect(validateResourcePatterns(['models/a', `models/${'*a'.repeat(9)}`], '/resources')).toEqual([
      { path: '/resources/1', message: expect.stringContaining('at most 256 characters and 8 *') },
    ]);
  });
});

describe('constraints', () => {
  test('absent and null members are any, an empty list is none', () => {
    expect(parseConstraints(undefined)).toEqual({ kind: 'ok', value: {} });
    expect(parseConstraints(null)).toEqual({ kind: 'ok', value: {} });
    expect(parseConstraints({ models: null, collections: [] })).toEqual({ kind: 'ok', value: { collections: [] } });
  });

  test('a list has at most 200 entries for each kind, of at most 256 characters and 8 stars', () => {
    const list = (count: number) => Array.from({ length: count }, (_, i) => `c${i}*`);
    expect(validateConstraints({ models: list(200), collections: list(200), agents: list(200) })).toEqual([]);
    expect(validateConstraints({ models: list(200), collections: list(201) })).toEqual([
      { path: '/resource_constraints/collections', message: 'must have at most 200 entries' },
    ]);
    for (const [glob, accepted] of BOUNDARIES) {
      expect([glob, paths(validateConstraints({ agents: ['a', glob] }))]).toEqual([
        glob,
        accepted ? [] : ['/resource_constraints/agents/1'],
      ]);
    }
  });

  test('the constraints of a key take at most 64 KiB as JSON, those of a role what its tenant has', () => {
    const constraints = (last: number) => ({
      models: [...new Array(199).fill('x'.repeat(253)), 'y'.repeat(last)],
      agents: new Array(56).fill('é'.repeat(127)),
    });
    const bytes = JSON.stringify(constraints(1)).length + 56 * 127;
    const fitting = 64 * 1024 - bytes + 1;
    expect(fitting).toBeLessThan(256);
    expect(validateKeyConstraints(constraints(fitting))).toEqual([]);
    expect(validateKeyConstraints(constraints(fitting + 1))).toEqual([
      { path: '/resource_constraints', message: 'must be at most 64 KiB as JSON' },
    ]);
    expect(validateConstraints(constraints(fitting + 1))).toEqual([]);
    expect(validateKeyConstraints(undefined)).toEqual([]);
    expect(paths(validateKeyConstraints({ models: [''] }))).toEqual(['/resource_constraints/models/0']);
  });

  test('unknown kinds and empty names are at fault', () => {
    expect(paths(validateConstraints({ planets: [], models: ['a', ''], agents: 'x' }))).toEqual([
      '/resource_constraints/planets',
      '/resource_constraints/models/1',
      '/resource_constraints/agents',
    ]);
    expect(paths(validateConstraints([]))).toEqual(['/resource_constraints']);
  });
});

/**
 * A grid of 7 x 24 cells with the most runs of hours: every other cell of each day, shifted from one day to the next.
 */
function checkerboard(): readonly string[] {
  const hour = (value: number) => `${String(value).padStart(2, '0')}:00`;
  return DAY_NAMES.flatMap((day, index) =>
    Array.from({ length: 12 }, (_, i) => 2 * i + (index % 2)).map(
      (start) => `${day} ${hour(start)}-${hour(start + 1)}`,
    ),
  );
}

const MALFORMED_WINDOWS = [
  ...[
    '',
    ' ',
    'Mon',
    'Mon ',
    '08:00-18:00',
    'Mon-Fri',
    'Mon 08:00',
    'Mon 08:00-',
    'Mon -18:00',
    'Mon 8:00-18:00',
    'Mon 08:00-25:00',
  ],
  ...[
    'Mon 24:00-06:00',
    'Mon 08:00-24:01',
    'Mon 08:00-18:60',
    'Mon 08:00 - 18:00',
    'Mon  08:00-18:00',
    ' Mon 08:00-18:00',
  ],
  ...[
    'Mon 08:00-18:00 ',
    'Mon 08:00-18:00\n',
    'mon 08:00-18:00',
    'Monday 08:00-18:00',
    'Mon,Tue 08:00-18:00',
    'Mon-Mon 08:00-18:00',
  ],
  ...[
    'Mon-Tue-Wed 08:00-18:00',
    'Mon–Fri 08:00–18:00',
    'Mon 08:00-12:00,13:00-18:00',
    'Mon 00:00-00:00',
    'Mon 08:00-18:00Z',
    '* 08:00-18:00',
  ],
];

describe('conditions', () => {
  test.each([
    [undefined],
    [null],
    [{}],
    [{ ip_address: { in: ['10.0.0.0/8', '::1', '::ffff:10.0.0.0/104'] } }],
    [{ ip_address: { in: ['10.0.0.0/8'], not_in: ['10.1.0.0/16'] } }],
    [{ time: { between: ['00:00', '23:59'] } }],
    [{ time: { between: ['09:00', '24:00'], not_between: ['00:00', '24:00'] } }],
    [{ time: { not_between: ['22:00', '06:00'] }, timezone: 'Europe/Berlin' }],
    [{ day_of_week: { in: ['Mon', 'Sun'] } }],
    [{ weekly_hours: { in: ['Mon-Fri 08:00-18:00', 'Sat 22:00-02:00'] } }],
    [{ weekly_hours: { in: ['Fri-Mon 00:00-24:00'], not_in: ['Sun 23:59-00:00'] }, timezone: 'Europe/Berlin' }],
    [{ weekly_hours: { in: checkerboard() } }],
  ])('%j is accepted', (conditions) => {
    expect(validateConditions(conditions)).toEqual([]);
  });

  test.each<readonly [unknown, string]>([
    [[], '/conditions'],
    ['always', '/conditions'],
    [{ moon: {} }, '/conditions/moon'],
    [{ ip_address: {} }, '/conditions/ip_address'],
    [{ ip_address: null }, '/conditions/ip_address'],
    [{ ip_address: ['10.0.0.0/8'] }, '/conditions/ip_address'],
    [{ ip_address: { in: [] } }, '/conditions/ip_address/in'],
    [{ ip_address: { in: '10.0.0.0/8' } }, '/conditions/ip_address/in'],
    [{ ip_address: { between: ['10.0.0.0/8'] } }, '/conditions/ip_address/between'],
    [{ ip_address: { in: ['10.0.0.1/8'] } }, '/conditions/ip_address/in/0'],
    [{ ip_address: { in: ['10.0.0.0/8', '010.0.0.0/8'] } }, '/conditions/ip_address/in/1'],
    [{ ip_address: { not_in: ['fe80::%1/64'] } }, '/conditions/ip_address/not_in/0'],
    [{ time: { between: ['09:00', '09:00'] } }, '/conditions/time/between'],
    [{ time: { between: ['09:00'] } }, '/conditions/time/between'],
    [{ time: { between: ['09:00', '10:00', '11:00'] } }, '/conditions/time/between'],
    [{ time: { between: [] } }, '/conditions/time/between'],
    [{ time: { between: ['9:00', '10:00'] } }, '/conditions/time/between/0'],
    [{ time: { not_between: ['24:00', '09:00'] } }, '/conditions/time/not_between/0'],
    [{ time: { not_between: ['09:00', '24:01'] } }, '/conditions/time/not_between/1'],
    [{ time: { between: ['24:00', '24:00'] } }, '/conditions/time/between/0'],
    [{ time: { in: ['09:00', '10:00'] } }, '/conditions/time/in'],
    [{ day_of_week: { in: [] } }, '/conditions/day_of_week/in'],
    [{ day_of_week: { in: ['mon'] } }, '/conditions/day_of_week/in/0'],
    [{ day_of_week: { not_in: ['Monday'] } }, '/conditions/day_of_week/not_in/0'],
    [{ weekly_hours: {} }, '/conditions/weekly_hours'],
    [{ weekly_hours: ['Mon 08:00-18:00'] }, '/conditions/weekly_hours'],
    [{ weekly_hours: { in: [] } }, '/conditions/weekly_hours/in'],
    [{ weekly_hours: { in: 'Mon 08:00-18:00' } }, '/conditions/weekly_hours/in'],
    [{ weekly_hours: { between: ['Mon 08:00-18:00'] } }, '/conditions/weekly_hours/between'],
    [{ weekly_hours: { not_in: [...checkerboard(), 'Mon 08:00-18:00'] } }, '/conditions/weekly_hours/not_in'],
    [{ weekly_hours: { in: ['Mon 08:00-18:00', 'Mon 08:00-08:00'] } }, '/conditions/weekly_hours/in/1'],
    [{ weekly_hours: { not_in: [8] } }, '/conditions/weekly_hours/not_in/0'],
    ...MALFORMED_WINDOWS.map((text) => [{ weekly_hours: { in: [text] } }, '/conditions/weekly_hours/in/0'] as const),
    [{ timezone: 'Mars/Olympus' }, '/conditions/timezone'],
    [{ timezone: '+01:00' }, '/conditions/timezone'],
    [{ timezone: null }, '/conditions/timezone'],
  ])('%j is refused at %s', (conditions, path) => {
    expect(paths(validateConditions(conditions))).toContain(path);
  });

  test('a pointer escapes what a member name holds', () => {
    expect(paths(validateConditions({ 'a/b~c': 1 }))).toEqual(['/conditions/a~1b~0c']);
  });

  test('what is accepted compiles to what can be read', () => {
    const operand = fc.oneof(
      fc.constantFrom('10.0.0.0/8', '10.0.0.1/8', '08:00', '09:00', 'Mon', 'Mon 08:00-09:00', 'x'),
      fc.anything(),
    );
    const operators = fc.dictionary(
      fc.constantFrom('in', 'not_in', 'between', 'not_between', 'x'),
      fc.oneof(fc.array(operand, { maxLength: 3 }), operand),
      {
        maxKeys: 2,
      },
    );
    const conditions = fc.dictionary(
      fc.constantFrom('ip_address', 'time', 'day_of_week', 'weekly_hours', 'timezone', 'x'),
      fc.oneof(operators, operand),
      { maxKeys: 3 },
    );
    fc.assert(
      fc.property(conditions, (value) => {
        const parsed = parseConditions(value);
        if (parsed.kind === 'errors') expect(parsed.errors.length).toBeGreaterThan(0);
        else expect(compileConditions(parsed.value).checks.every((check) => check.kind !== 'unreadable')).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
  });
});

test('a time zone is a name of the IANA database', () => {
  expect(validateTimezone('America/New_York', '/settings/timezone')).toEqual([]);
  for (const zone of ['', 'Nowhere', 5, null, 'GMT+1'])
    expect(validateTimezone(zone, '/settings/timezone')).toHaveLength(1);
});
