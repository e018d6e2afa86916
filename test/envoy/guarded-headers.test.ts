/** The patterns for headers in `envoy/*.yaml` by themselves: each of them has to hold where the others are missing. */

import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { prepareRemovals, removedOnPublic } from '../../src/extauthz/own-headers.ts';
import { DEMO_CONFIG, PRODUCTION_CONFIG } from '../support/envoy.ts';
import { readFields } from '../support/protobuf.ts';
import { fold, HEADER_SPELLINGS } from './spellings/headers.ts';

interface Matcher {
  readonly exact?: string;
  readonly safe_regex?: { readonly regex: string };
}

const matches = ({ exact, safe_regex }: Matcher, name: string): boolean =>
  exact === name || (safe_regex !== undefined && new RegExp(`^(?:${safe_regex.regex})$`).test(name));

interface Filter {
  readonly name: string;
  readonly typed_config: {
    readonly mutations?: {
      readonly request_mutations: readonly { readonly remove_on_match?: { readonly key_matcher: Matcher } }[];
    };
    readonly allowed_headers?: { readonly patterns: readonly Matcher[] };
    readonly decoder_header_mutation_rules?: { readonly allow_expression: { readonly regex: string } };
  };
}

async function filtersOf(file: URL): Promise<readonly Filter[]> {
  const config = parse(await readFile(file, 'utf8'), { merge: true });
  return config.static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http_filters;
}

const TRUE_NAMES = ['x-tenant-id', 'authorization', 'x-api-key', 'api-key', 'accept-encoding'];
const SIMILAR = [
  'api',
  'api-keys',
  'apikey',
  'x-api',
  'x-tenant',
  'x-tenant-ids',
  'authorizations',
  'proxy-authorization',
];
const UNRELATED = ['accept', 'accept-encoding', 'user-agent', 'idempotency-key', 'x-stainless-os', 'x-forwarded-proto'];

const separator = fc.string({ unit: fc.constantFrom(...'-_.!~|'), minLength: 1, maxLength: 3 });
const edge = fc.oneof(fc.constant(''), separator);
const spelling = fc
  .tuple(
    fc.constantFrom(...TRUE_NAMES, 'x-postern-a-b', 'x-method-override'),
    fc.array(separator, { minLength: 3, maxLength: 3 }),
    edge,
    edge,
  )
  .map(
    ([name, by, before, after]) =>
      before + name.split('-').reduce((begun, part, i) => begun + (by[i - 1] ?? '-') + part) + after,
  )
  .filter((name) => !TRUE_NAMES.includes(name));

describe.each([
  ['demo.yaml', DEMO_CONFIG],
  ['production.yaml', PRODUCTION_CONFIG],
])('%s', (_name, file) => {
  test('removes every spelling of the guarded headers by its filter, and no other header', async () => {
    const mutation = (await filtersOf(file)).find(({ name }) => name === 'envoy.filters.http.header_mutation');
    const removers = mutation?.typed_config.mutations?.request_mutations.flatMap(
      (one) => one.remove_on_match?.key_matcher ?? [],
    );
    const isRemoved = (name: string): boolean => (removers ?? []).some((matcher) => matches(matcher, name));
    expect(HEADER_SPELLINGS.filter((name) => !isRemoved(name.toLowerCase()))).toEqual([]);
    expect([...TRUE_NAMES, ...SIMILAR, ...UNRELATED].filter(isRemoved)).toEqual([]);
    fc.assert(fc.property(spelling, (name) => isRemoved(name)));
  });

  test('shows the check every spelling that gets past the filter', async () => {
    const check = (await filtersOf(file)).find(({ name }) => name === 'envoy.filters.http.ext_authz');
    const patterns = check?.typed_config.allowed_headers?.patterns ?? [];
    const isShown = (name: string): boolean => patterns.some((matcher) => matches(matcher, name));
    expect(HEADER_SPELLINGS.filter((name) => !isShown(name.toLowerCase()))).toEqual([]);
    expect(UNRELATED.filter(isShown)).toEqual([]);
    fc.assert(fc.property(spelling, (name) => isShown(name)));
  });

  test('says in the check of every route that it has every spelling', async () => {
    const text = await readFile(file, 'utf8');
    const checks: unknown[] = [];
    JSON.stringify(parse(text, { merge: true }), (_key, value) => {
      if (String(value?.['@type']).endsWith('.ExtAuthzPerRoute')) checks.push(value.check_settings.context_extensions);
      return value;
    });
    expect(checks.length).toBeGreaterThan(3);
    for (const context of checks) expect(context).toMatchObject({ 'postern.headers': 'sent' });
  });

  test('lets the answer remove every name that it may remove', async () => {
    const check = (await filtersOf(file)).find(({ name }) => name === 'envoy.filters.http.ext_authz');
    const expression =
      check?.typed_config.decoder_header_mutation_rules?.allow_expression ?? expect.fail('no expression');
    const removals = prepareRemovals(false)({
      userId: false,
      roles: false,
      maxTokens: false,
      defaultModel: false,
      token: false,
      metered: true,
      hasAllAliases: false,
    });
    const fields = readFields(Buffer.concat([removals, removedOnPublic({ names: [], areAll: false })]));
    const listed = fields.map(({ value }) => (typeof value === 'number' ? '' : Buffer.from(value).toString()));
    const names = [...listed, ...HEADER_SPELLINGS.map((name) => name.toLowerCase())];
    expect(listed).toEqual(
      expect.arrayContaining([...TRUE_NAMES.slice(1), 'accept-encoding', 'x_http_method', 'x.tenant_id']),
    );
    expect(names.filter((name) => !matches({ safe_regex: expression }, name))).toEqual([]);
    fc.assert(fc.property(spelling, (name) => matches({ safe_regex: expression }, name)));
  });
});

test('the table of spellings folds into guarded names only', () => {
  const guarded =
    /^(x-postern-.+|x-tenant-id|x-http-method(-override)?|x-method-override|x-(original|rewrite)-url|(x-)?api-key|authorization|accept-encoding)$/;
  expect(HEADER_SPELLINGS.filter((name) => !guarded.test(fold(name)))).toEqual([]);
});
