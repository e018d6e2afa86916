/** The description of the API, read by the linters that its users run. */

import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Spectral } from '@stoplight/spectral-core';
import { oas } from '@stoplight/spectral-rulesets';
import { expect, it, vi } from 'vitest';
import { isObject } from '../../src/domain/json.ts';
import { describeApi } from '../../src/http/openapi/document.ts';
import { openApiEndpoint } from '../../src/http/openapi/endpoint.ts';
import { type Json, plain } from '../../src/http/openapi/json.ts';
import { describedEndpoints } from '../../src/iam/api-routes.ts';

vi.setConfig({ testTimeout: 60_000 });

const routes = describedEndpoints();
const DOCUMENT: Json = plain(describeApi([...routes, openApiEndpoint(routes)]));

it("has no finding by Spectral's rules for OpenAPI", async () => {
  const spectral = new Spectral();
  spectral.setRuleset({ ...oas, extends: [] });
  const findings = await spectral.run(JSON.stringify(DOCUMENT));
  expect(findings.map(({ code, path, message }) => `${code} ${path.join('/')}: ${message}`)).toEqual([]);
});

it("has no finding by Redocly's recommended rules", async () => {
  const config = await createConfig({
    extends: ['recommended'],
    // It looks for the members of `not: { required }` in the same schema, and they are defined around it.
    rules: { 'no-required-schema-properties-undefined': 'off' },
  });
  const findings = await lintFromString({ source: JSON.stringify(DOCUMENT), config });
  expect(
    findings
      .filter((each) => !isOfRedirect(each))
      .map(({ ruleId, location, message }) => `${ruleId} ${location[0]?.pointer ?? ''}: ${message}`),
  ).toEqual([]);
});

/** A browser follows the addresses of a login by an issuer, so their success is a redirect. */
function isOfRedirect({ ruleId, location }: { ruleId: string; location: { pointer?: string | undefined }[] }): boolean {
  const pointer = location[0]?.pointer ?? '';
  return ruleId === 'operation-2xx-response' && /sso~1\{id\}~1(?:start|callback)\/get\/responses$/.test(pointer);
}

it('describes every member, and every parameter, in a sentence', () => {
  const { components, paths } = DOCUMENT;
  const { schemas = {}, parameters = {} } = isObject(components) ? components : {};
  const found = [...members(schemas, []), ...parametersOf(paths), ...named(parameters)];
  expect(found.length).toBeGreaterThan(800);
  expect(found.filter(({ description }) => !/^\S.*\.$/su.test(description)).map(({ path }) => path)).toEqual([]);
});

interface Described {
  readonly path: string;
  readonly description: string;
}

/** Those that refer to a component are described there. */
function* members(schema: unknown, path: readonly string[]): Generator<Described> {
  if (Array.isArray(schema)) for (const each of schema) yield* members(each, path);
  if (!isObject(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'properties' && isObject(value)) {
      for (const [name, member] of Object.entries(value)) {
        if (isObject(member) && member['const'] === undefined && !('$ref' in member) && !('allOf' in member)) {
          yield { path: [...path, name].join('.'), description: String(member['description'] ?? '') };
        }
        yield* members(member, [...path, name]);
      }
    } else if (keyword !== 'not' && keyword !== 'examples' && keyword !== 'default' && typeof value === 'object') {
      yield* members(value, path.length === 0 ? [keyword] : path);
    }
  }
}

function* parametersOf(paths: unknown): Generator<Described> {
  for (const [path, item] of Object.entries(isObject(paths) ? paths : {})) {
    for (const operation of Object.values(isObject(item) ? item : {})) {
      const list: readonly unknown[] =
        isObject(operation) && Array.isArray(operation['parameters']) ? operation['parameters'] : [];
      for (const each of list) {
        if (isObject(each) && !('$ref' in each)) {
          yield { path: `${path} ?${String(each['name'])}`, description: String(each['description'] ?? '') };
        }
      }
    }
  }
}

function* named(parameters: unknown): Generator<Described> {
  for (const [name, each] of Object.entries(isObject(parameters) ? parameters : {})) {
    yield { path: name, description: String(isObject(each) ? (each['description'] ?? '') : '') };
  }
}
