import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileConditions } from '../../src/decision/conditions.ts';
import {
  isResourcePattern,
  parseConditions,
  parseConstraints,
  validateConditions,
  validateConstraints,
  validatePatterns,
  validateResourcePatterns,
  validateTimezone,
} from '../../src/decision/validate.ts';

const paths = (errors: readonly { path: string }[]) => errors.map((error) => error.path);

describe('patterns', () => {
  test('each entry at fault is named', () => {
    expect(paths(validatePatterns(['chat:*', 'cha*:read', 7], '/permissions'))).toEqual(['/permissions/1', '/permissions/2']);
    expect(paths(validatePatterns('chat:*', '/permissions'))).toEqual(['/permissions']);
    expect(validatePatterns([], '/permissions')).toEqual([]);
    expect(paths(validatePatterns(new Array(1001).fill('*'), '/scopes'))).toEqual(['/scopes']);
  });

  test('resources are * or a known kind and a glob', () => {
    expect(validateResourcePatterns(['*', 'models/*', 'collections/hr-*', 'agents/a'], '/resources')).toEqual([]);
    expect(paths(validateResourcePatterns(['models', 'models/', 'planets/x', 'models/\u0000'], '/resources'))).toHaveLength(4);
    expect(isResourcePattern(`models/${'x'.repeat(600)}`)).toBe(false);
  });
});

describe('constraints', () => {
  test('absent and null members are any, an empty list is none', () => {
    expect(parseConstraints(undefined)).toEqual({ kind: 'ok', value: {} });
    expect(parseConstraints(null)).toEqual({ kind: 'ok', value: {} });
    expect(parseConstraints({ models: null, collections: [] })).toEqual({ kind: 'ok', value: { collections: [] } });
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

describe('conditions', () => {
  test.each([
    [undefined],
    [null],
    [{}],
    [{ ip_address: { in: ['10.0.0.0/8', '::1', '::ffff:10.0.0.0/104'] } }],
    [{ ip_address: { in: ['10.0.0.0/8'], not_in: ['10.1.0.0/16'] } }],
    [{ time: { between: ['00:00', '23:59'] } }],
    [{ time: { not_between: ['22:00', '06:00'] }, timezone: 'Europe/Berlin' }],
    [{ day_of_week: { in: ['Mon', 'Sun'] } }],
  ])('%j is accepted', (conditions) => {
    expect(validateConditions(conditions)).toEqual([]);
  });

  test.each([
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
    [{ time: { not_between: ['09:00', '24:00'] } }, '/conditions/time/not_between/1'],
    [{ time: { in: ['09:00', '10:00'] } }, '/conditions/time/in'],
    [{ day_of_week: { in: [] } }, '/conditions/day_of_week/in'],
    [{ day_of_week: { in: ['mon'] } }, '/conditions/day_of_week/in/0'],
    [{ day_of_week: { not_in: ['Monday'] } }, '/conditions/day_of_week/not_in/0'],
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
    const operand = fc.oneof(fc.constantFrom('10.0.0.0/8', '10.0.0.1/8', '08:00', '09:00', 'Mon', 'x'), fc.anything());
    const operators = fc.dictionary(
      fc.constantFrom('in', 'not_in', 'between', 'not_between', 'x'),
      fc.oneof(fc.array(operand, { maxLength: 3 }), operand),
      {
        maxKeys: 2,
      },
    );
    const conditions = fc.dictionary(
      fc.constantFrom('ip_address', 'time', 'day_of_week', 'timezone', 'x'),
      fc.oneof(operators, operand),
      { maxKeys: 3 },
    );
    fc.assert(
      fc.property(conditions, (value) => {
        const parsed = parseConditions(value);
        if (parsed.kind === 'errors') expect(parsed.errors.length).toBeGreaterThan(0);
        else expect(compileConditions(parsed.value).checks.every((check) => check.kind !== 'unreadable')).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

test('a time zone is a name of the IANA database', () => {
  expect(validateTimezone('America/New_York', '/settings/timezone')).toEqual([]);
  for (const zone of ['', 'Nowhere', 5, null, 'GMT+1']) expect(validateTimezone(zone, '/settings/timezone')).toHaveLength(1);
});
