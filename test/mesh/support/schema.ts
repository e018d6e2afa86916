/**
 * Validates manifests as an API server does with strict field validation, except rules in CEL: by the schemas in the
 * projects' own CRDs.
 */

import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import { isMapping, type Mapping } from './guides.ts';
import { WRITTEN } from './written-schemas.ts';

interface Known {
  readonly schema: Mapping;
}

const known: ReadonlyMap<string, Known> = new Map([
  ...Object.entries<Known>(JSON.parse(readFileSync(new URL('../schemas.json', import.meta.url), 'utf8'))),
  ...Object.entries(WRITTEN).map(([name, schema]) => [name, { schema }] as const),
]);
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
const compiled = new Map<string, ValidateFunction>();

const METADATA = {
  type: 'object',
  required: ['name'],
  additionalProperties: false,
  properties: {
    name: { type: 'string' },
    namespace: { type: 'string' },
    labels: { type: 'object' },
    annotations: { type: 'object' },
  },
};

/** Members of every resource, which some CRDs leave out. */
const OWN = { apiVersion: { type: 'string' }, kind: { type: 'string' } };

/** Schemas that constrain the object around them, so that what they do not name is not unknown. */
const COMBINED: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'not']);

/**
 * Returns the schema with every field unknown that it does not name, and with OpenAPI's own words in those of JSON
 * Schema.
 */
function strict(schema: unknown, combined = false): unknown {
  if (Array.isArray(schema)) return schema.map((one) => strict(one, combined));
  if (!isMapping(schema)) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => {
      if (name === 'properties' && isMapping(value)) {
        return [
          name,
          Object.fromEntries(Object.entries(value).map(([key, property]) => [key, strict(property, combined)])),
        ];
      }
      return [name, strict(value, combined || COMBINED.has(name))];
    }),
  );
  const open = combined || 'additionalProperties' in schema || schema['x-kubernetes-preserve-unknown-fields'] === true;
  if (isMapping(schema['properties']) && !open) inner['additionalProperties'] = false;
  if (schema['x-kubernetes-int-or-string'] === true) return { ...inner, type: ['integer', 'string'] };
  if (schema['nullable'] === true && typeof schema['type'] === 'string') inner['type'] = [schema['type'], 'null'];
  return inner;
}

function validator(name: string): ValidateFunction | undefined {
  const before = compiled.get(name);
  if (before !== undefined) return before;
  const schema = strict(known.get(name)?.schema);
  if (!isMapping(schema) || !isMapping(schema['properties'])) return undefined;
  const made = ajv.compile({ ...schema, properties: { ...schema['properties'], ...OWN, metadata: METADATA } });
  compiled.set(name, made);
  return made;
}

/** Returns what is wrong with a manifest; empty if it is valid. A kind without a schema is a problem, too. */
export function problemsOf(manifest: Mapping): readonly string[] {
  return problemsWith(`${manifest['apiVersion']} ${manifest['kind']}`, manifest);
}

/** Returns what is wrong with a document by the schema of a name. */
export function problemsWith(name: string, manifest: Mapping): readonly string[] {
  const validate = validator(name);
  if (validate === undefined) return [`no schema of ${name}`];
  if (validate(manifest)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name} ${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
