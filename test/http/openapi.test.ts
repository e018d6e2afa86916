import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { type TSchema, Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { isPermission, isPermissionPattern } from '../../src/decision/permissions.ts';
import { isResourcePattern, parseConditions } from '../../src/decision/validate.ts';
import { parsePolicyName, parseRoleName, parseTenantId } from '../../src/domain/ids.ts';
import { isObject } from '../../src/domain/json.ts';
import { DAY_NAMES } from '../../src/domain/records.ts';
import { isStorable } from '../../src/domain/storable.ts';
import { shows } from '../../src/http/answers.ts';
import { type Endpoint, publicEndpoint } from '../../src/http/endpoint.ts';
import { describeApi } from '../../src/http/openapi/document.ts';
import type { Json } from '../../src/http/openapi/json.ts';
import * as grammar from '../../src/iam/schema/grammar.ts';
import { component } from '../../src/iam/schema/keywords.ts';
import { holdAgainstDescription } from '../support/description.ts';
import { enough, runs } from '../support/properties.ts';
import { type Harness, it } from './harness.ts';

let h: Harness;
let api: Json;
it.beforeAll(async ({ harness }) => {
  h = harness;
  api = (await h.api('GET', '/openapi.json')).json;
});

/** All objects in a value, with where they are. */
function* objectsIn(value: unknown, at = '#'): Generator<readonly [string, Json]> {
  if (Array.isArray(value)) for (const [i, each] of value.entries()) yield* objectsIn(each, `${at}/${i}`);
  if (!isObject(value)) return;
  yield [at, value];
  for (const [name, member] of Object.entries(value)) {
    yield* objectsIn(member, `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
}

function find(pointer: string): unknown {
  return pointer
    .slice(2)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), api);
}

interface Operation {
  readonly where: string;
  readonly path: string;
  readonly operation: Json;
}

function operations(): readonly Operation[] {
  return Object.entries(isObject(api['paths']) ? api['paths'] : {}).flatMap(([path, item]) =>
    Object.entries(isObject(item) ? item : {}).map(([method, operation]) => ({
      where: `${method} ${path}`,
      path,
      operation: isObject(operation) ? operation : {},
    })),
  );
}

function parametersOf(operation: Json): readonly Json[] {
  const list: readonly unknown[] = Array.isArray(operation['parameters']) ? operation['parameters'] : [];
  return list
    .filter(isObject)
    .map((each) => (typeof each['$ref'] === 'string' ? find(each['$ref']) : each))
    .filter(isObject);
}

describe('/openapi.json', () => {
  test('is OpenAPI 3.1 with everything that such a document needs', () => {
    expect(api).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Postern', version: expect.any(String) },
      servers: [{ url: '/' }],
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    });
    for (const { where, operation } of operations()) {
      expect(operation, where).toMatchObject({
        operationId: expect.stringMatching(/^[a-z][A-Za-z]+$/),
        summary: expect.stringMatching(/\.$/),
        tags: [expect.any(String)],
        security: expect.any(Array),
        responses: expect.objectContaining({ 503: expect.anything() }),
      });
    }
  });

  test('describes every route and nothing else', () => {
    const described = operations().map(({ where }) => where);
    const routes = h.routes.filter(({ path }) => !path.startsWith('/docs'));
    const served = routes.map(({ method, path }) => `${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(described.toSorted()).toEqual(served.toSorted());
  });

  test('gives each operation a name of its own', () => {
    const names = operations().map(({ operation }) => operation['operationId']);
    expect(new Set(names).size).toBe(names.length);
  });

  test('refers to nothing that is not in it', () => {
    const references = [...objectsIn(api)].flatMap(([at, { $ref: ref }]) =>
      typeof ref === 'string' ? [[at, ref] as const] : [],
    );
    expect(references.length).toBeGreaterThan(100);
    expect(references.filter(([, ref]) => find(ref) === undefined)).toEqual([]);
  });

  test('keeps no component that nothing refers to', () => {
    const referred = new Set([...objectsIn(api)].map(([, { $ref: ref }]) => ref));
    const kept = Object.entries(isObject(api['components']) ? api['components'] : {})
      .filter(([kind]) => kind !== 'securitySchemes')
      .flatMap(([kind, all]) => Object.keys(isObject(all) ? all : {}).map((name) => `#/components/${kind}/${name}`));
    expect(kept.filter((pointer) => !referred.has(pointer))).toEqual([]);
  });

  test('declares exactly the parameters that a path has', () => {
    for (const { where, path, operation } of operations()) {
      const declared = parametersOf(operation).filter((parameter) => parameter['in'] === 'path');
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(
        declared.map((parameter) => [parameter['name'], parameter['required']]),
        where,
      ).toEqual(named.map((name) => [name, true]));
    }
  });

  test('holds schemas of JSON Schema 2020-12 alone, without marks of the server', () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allowUnionTypes: true });
    addFormats.default(ajv);
    const schemas = [...objectsIn(api)].flatMap(([at, { schema }]) =>
      isObject(schema) ? [[at, schema] as const] : [],
    );
    ajv.addSchema(components());
    for (const [at, schema] of schemas) expect(() => ajv.compile(inComponents(schema)), at).not.toThrow();
    expect(schemas.length).toBeGreaterThan(100);
  });

  test('gives examples of bodies that its own schemas accept', () => {
    const examples = [...objectsIn(find('#/components/schemas'))].flatMap(([at, schema]) =>
      Array.isArray(schema['examples'])
        ? schema['examples'].map((example: unknown) => [at, schema, example] as const)
        : [],
    );
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema(components());
    const refused = examples.filter(([, schema, example]) => !ajv.validate(inComponents(schema), example));
    expect(refused).toEqual([]);
    expect(examples.length).toBeGreaterThan(10);
  });

  test('names every member of a published key, which a verifier needs', async () => {
    const { json } = await h.api('GET', '/.well-known/jwks.json');
    const [key] = Array.isArray(json['keys']) ? json['keys'].filter(isObject) : [];
    const described = find('#/components/schemas/KeySet/properties/keys/items/properties');
    expect(new Set(Object.keys(isObject(described) ? described : {}))).toEqual(new Set(Object.keys(key ?? {})));
  });

  test('stays the same bytes, and is 304 for its current tag', async () => {
    const first = await h.api('GET', '/openapi.json');
    const etag = String(first.headers['etag']);
    const again = await h.api('GET', '/openapi.json', { headers: { 'if-none-match': etag } });
    expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', etag]);
    expect((await h.api('GET', '/openapi.json')).text).toBe(first.text);
  });
});

const COMPONENTS = 'https://postern.test/components';

/** The components as one schema, so that each of them is checked and compiled once. */
function components(): Json {
  const all = isObject(api['components']) ? api['components']['schemas'] : {};
  return { $id: COMPONENTS, $defs: inComponents(all) };
}

/** References to components as references to definitions of that schema. */
function inComponents(schema: unknown): Json {
  const moved: Json = JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', `"${COMPONENTS}#/$defs/`));
  return moved;
}

describe('the description of names and patterns accepts exactly the texts that the use cases accept', () => {
  const character = fc.constantFrom(
    ...'aZ09-_*:/.\\ \u0000\u007fé😀'.split(''),
    'models/',
    'agents/',
    'collections/',
    'admin:',
  );
  const texts = fc.array(character, { maxLength: 12 }).map((parts) => parts.join(''));

  test.each<readonly [string, string, (text: string) => boolean]>([
    ['a role', grammar.NAME, (text) => parseRoleName(text) !== undefined],
    ['a policy', grammar.NAME, (text) => parsePolicyName(text) !== undefined],
    ['a tenant', grammar.TENANT_ID_PATTERN, (text) => parseTenantId(text) !== undefined],
    ['a permission pattern', grammar.PERMISSION_PATTERN, isPermissionPattern],
    ['a permission', grammar.PERMISSION, isPermission],
    ['a resource pattern', grammar.RESOURCE_PATTERN, isResourcePattern],
    ['a key of metadata', grammar.METADATA_KEY, (text) => /[^\\]$/.test(text) && isStorable(text)],
  ])('%s', (_what, pattern, accepts) => {
    const described = new RegExp(pattern, 'u');
    fc.assert(
      fc.property(texts, (text) => {
        expect(described.test(text)).toBe(accepts(text.toWellFormed()));
      }),
      { numRuns: runs(2000) },
    );
  });
});

test('the description of conditions accepts exactly the conditions that a policy accepts', () => {
  const described = new Ajv2020({ strict: false }).compile({ type: 'object', ...grammar.someConditions.asksAlso });
  const mostly = <T>(usual: fc.Arbitrary<T>, ...odd: unknown[]) =>
    fc.oneof({ weight: 30, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...odd) });
  const time = mostly(fc.constantFrom('00:00', '08:00', '18:30', '23:59', '24:00'), '24:01', '8:00', '08:00 ', '', 8);
  const days = mostly(
    fc.constantFrom('Mon', 'Sun', 'Mon-Fri', 'Fri-Mon', 'Wed-Tue'),
    'Tue-Tue',
    'mon',
    '',
    'Mon,Tue',
    'Mon-Tue-Wed',
  );
  const window = mostly(
    fc
      .tuple(days, mostly(fc.constant(' '), '', '  '), time, mostly(fc.constant('-'), ' - ', '–'), time)
      .map((parts) => parts.join('')),
    'Mon',
    8,
  );
  const list = (one: fc.Arbitrary<unknown>, usualLength: number) =>
    fc.oneof(
      { weight: 5, arbitrary: fc.array(one, { minLength: 1, maxLength: usualLength }) },
      fc.array(one, { maxLength: 3 }),
    );
  const both = (one: string, other: string, operand: fc.Arbitrary<unknown>) =>
    fc.dictionary(mostly(fc.constantFrom(one, other), 'near').map(String), operand, { maxKeys: 2 });
  const conditions: fc.Arbitrary<object> = fc.oneof(
    fc.record({ time: both('between', 'not_between', fc.oneof(fc.tuple(time, time), list(time, 2))) }),
    fc.record({
      day_of_week: both('in', 'not_in', list(mostly(fc.constantFrom(...DAY_NAMES), 'mon', 'Monday', 1), 7)),
    }),
    fc.record({ weekly_hours: both('in', 'not_in', list(window, 3)) }),
  );
  const accepted = new Map<string, number>();
  fc.assert(
    fc.property(conditions, (value) => {
      const { kind } = parseConditions(value);
      expect(described(value)).toBe(kind === 'ok');
      const [key = ''] = Object.keys(value);
      if (kind === 'ok') accepted.set(key, 1 + (accepted.get(key) ?? 0));
    }),
    { numRuns: runs(4500) },
  );
  expect(accepted.size).toBe(3);
  for (const [key, count] of accepted) expect(count, key).toBeGreaterThanOrEqual(enough(100));
});

describe('the check that all tests of the API run through', () => {
  const Thing = component('Thing', Type.Object({ name: Type.String() }));
  const route = (body: TSchema, path = '/v1/auth/thing'): Endpoint =>
    publicEndpoint({
      method: 'GET',
      path,
      operationId: 'getThing',
      summary: 'Get it.',
      answers: shows('It.', body),
      handler: async () => ({ status: 200 }),
    });
  const check = holdAgainstDescription([route(Thing)]);
  const headers = { 'content-type': 'application/json', 'x-request-id': 'req_1' };
  const good = { status: 200, headers, body: '{"name":"x"}' };

  test('passes what is described', () => {
    expect(() => check('GET', '/v1/auth/thing?x=1', good)).not.toThrow();
  });

  test.each([
    ['a status', { ...good, status: 201 }],
    [
      'a code',
      { status: 503, headers: { ...headers, 'content-type': 'application/problem+json' }, body: '{"code":"in_use"}' },
    ],
    ['a media type', { ...good, headers: { ...headers, 'content-type': 'text/plain' } }],
    ['a missing member', { ...good, body: '{}' }],
    ['another type', { ...good, body: '{"name":1}' }],
    ['a member more', { ...good, body: '{"name":"x","secret":"y"}' }],
    ['a missing header', { ...good, headers: { 'content-type': 'application/json' } }],
  ])('finds %s that is not described', (_what, answer) => {
    expect(() => check('GET', '/v1/auth/thing', answer)).toThrow('the description');
  });

  test('two different components of one name are found when the description is made', () => {
    const other = component('Thing', Type.Object({ name: Type.String(), more: Type.String() }));
    expect(() => describeApi([route(Thing), route(other, '/v1/auth/other')])).toThrow('Thing');
  });
});
