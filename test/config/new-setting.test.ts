/**
 * A new setting is one entry of the table, and the place that uses it: types, loading, error messages, documentation
 * and the schema of the chart's values follow from the entry. These tests add entries to copies of the table.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, expectTypeOf, it } from 'vitest';
import { parse } from 'yaml';
import { configSchema } from '../../scripts/lib/chart/config-schema.ts';
import { configurationPage } from '../../scripts/lib/reference/configuration.ts';
import type { Config } from '../../src/config/config.ts';
import { formatConfigError } from '../../src/config/config-error.ts';
import { configFile } from '../../src/config/file.ts';
import { GivenSettings, type Sources } from '../../src/config/given.ts';
import { choice, duration, integer, textLike } from '../../src/config/parsers.ts';
import { renderConfig } from '../../src/config/render.ts';
import { secret, setting, settingsOf, valuesOf } from '../../src/config/setting.ts';
import { ALL_SETTINGS, CONFIG_SETTINGS, SECRET_SETTINGS } from '../../src/config/settings.ts';
import { withDirectory } from './support/load.ts';

const TABLE = {
  ...CONFIG_SETTINGS,
  http: {
    ...CONFIG_SETTINGS.http,
    idleTimeoutMs: setting('http.idle-timeout', duration, '30s', 'Time after which the listener closes a connection.'),
  },
  sampling: {
    mode: setting('sampling.mode', choice('head', 'tail'), 'head', 'Which requests are sampled.', { example: 'tail' }),
    oneIn: setting('sampling.one-in', integer(1, 100), '10', 'One in this many is sampled.', { setByChart: true }),
  },
};
const SECRET_TABLE = {
  ...SECRET_SETTINGS,
  samplingToken: secret('sampling.token', textLike('a token', /^[a-z]+$/), 'letters', 'Token of the sampler.'),
};
const ALL = [
  ...ALL_SETTINGS,
  ...settingsOf(TABLE).filter((one) => !ALL_SETTINGS.includes(one)),
  SECRET_TABLE.samplingToken,
];

function loadTable(sources: Sources) {
  const given = new GivenSettings(ALL, sources);
  return { values: valuesOf(TABLE, given.take), secrets: valuesOf(SECRET_TABLE, given.take), given };
}

it('the type of the configuration follows from the entries', () => {
  const { values, secrets } = loadTable({ env: {} });
  expectTypeOf(values.http.idleTimeoutMs).toEqualTypeOf<number>();
  expectTypeOf(values.sampling.mode).toEqualTypeOf<'head' | 'tail'>();
  expectTypeOf(secrets.samplingToken).toEqualTypeOf<string | undefined>();
  expectTypeOf<Config['apiKeys']['retentionMs']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<Config['usage']['source']>().toEqualTypeOf<'envoy' | 'events'>();
  // @ts-expect-error There is no such setting.
  expect(values.sampling.rate).toBeUndefined();
});

it('a new setting has its default, and its value comes from the file or the environment', () => {
  expect(loadTable({ env: {} }).values).toMatchObject({
    http: { idleTimeoutMs: 30_000, maxHeapMb: 768 },
    sampling: { mode: 'head', oneIn: 10 },
  });
  withDirectory((directory) => {
    const file = join(directory, 'postern.yaml');
    writeFileSync(file, 'http: {idle-timeout: 5s}\nsampling:\n  mode: tail\n  token: abc\n');
    const { values, secrets, given } = loadTable({ file: configFile(file), env: { POSTERN_SAMPLING_ONE_IN: '7' } });
    expect(given.errors).toEqual([]);
    expect(values).toMatchObject({ http: { idleTimeoutMs: 5000 }, sampling: { mode: 'tail', oneIn: 7 } });
    expect(secrets.samplingToken).toBe('abc');
    const text = renderConfig(given.taken);
    expect(text).toMatch(/^http\.idle-timeout: 5s +# .*postern\.yaml:1$/m);
    expect(text).toMatch(/^sampling\.token: \*{8} +# /m);
  });
});

it('a wrong value of a new setting is reported by the name of its place, and a wrong secret is not quoted', () => {
  const { given } = loadTable({
    env: { POSTERN_SAMPLING_ONE_IN: '101', POSTERN_SAMPLING_TOKEN: 'UPPER', POSTERN_SAMPLING_MOD: 'x' },
  });
  expect(given.errors.map(formatConfigError)).toEqual([
    'POSTERN_SAMPLING_MOD: unknown variable; did you mean POSTERN_SAMPLING_MODE?',
    'POSTERN_SAMPLING_ONE_IN: expected a whole number from 1 to 100, got 101',
    'POSTERN_SAMPLING_TOKEN: expected a token',
  ]);
});

it('the documentation has a row and an example of a new setting', () => {
  const page = configurationPage(ALL);
  expect(page).toContain(
    '| `http.idle-timeout` | `30s` | a duration of at least 1s, such as 500s, 5m, 1h or 7d | Time after which the listener closes a connection. | `POSTERN_HTTP_IDLE_TIMEOUT` |',
  );
  expect(page).toContain('## `sampling`');
  expect(page).toContain('`POSTERN_SAMPLING_TOKEN`, `…_FILE` |');
  expect(page).toContain('sampling:\n  mode: tail\n  one-in: 10\n  token: letters\n');
});

it('the chart accepts a new setting, except a secret and a setting that it sets itself', () => {
  const validate = new Ajv2020({ strict: false }).compile(configSchema(ALL));
  const accepts = (yaml: string): boolean => validate(parse(yaml)) === true;
  expect(accepts('{http: {idle-timeout: 5s}, sampling: {mode: tail}}')).toBe(true);
  expect(accepts('{http: {idle-timeout: soon}}')).toBe(false);
  expect(accepts('{sampling: {mode: middle}}')).toBe(false);
  expect(accepts('{sampling: {one-in: 7}}')).toBe(false);
  expect(accepts('{sampling: {token: abc}}')).toBe(false);
});

/** A schema that accepts less than the parser would make the chart reject a working configuration. */
it.each(ALL_SETTINGS.filter(({ path }) => path !== 'ldap'))(
  'the schema of $path accepts its default and its example',
  ({ parser, defaultText, example }) => {
    const validate = new Ajv2020({ strict: false }).compile(parser.schema);
    for (const text of [defaultText, example]) {
      if (text !== undefined) expect([text, validate(parse(text))]).toEqual([text, true]);
    }
  },
);
