/** From an OpenAPI document to types: every construct that is known, and a name for every one that is not. */

import { describe, expect, it } from 'vitest';
import { typesOfDocument } from '../../scripts/lib/openapi-types.ts';
import { type Json, typeOfSchema } from '../../scripts/lib/schema-types.ts';

const typed = (schema: Json): string => typeOfSchema(schema, '#/here', '').replace(/\s+/g, ' ');

describe('a schema becomes the type of its values', () => {
  it.each<[Json, string]>([
    [true, 'unknown'],
    [{}, 'unknown'],
    [{ description: 'Anything.' }, 'unknown'],
    [false, 'never'],
    [{ type: 'string', pattern: '^a', minLength: 1 }, 'string'],
    [{ type: 'integer', minimum: 0, not: { const: 7 } }, 'number'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ type: 'string', enum: ['a', "it's", 'say "b"'] }, `'a' | 'it\\'s' | 'say "b"'`],
    [{ enum: [1, true, null] }, '1 | true | null'],
    [{ const: 'ldap' }, "'ldap'"],
    [{ $ref: '#/components/schemas/User', description: 'Who.' }, 'User'],
    [{ type: 'array', items: { type: 'string' } }, 'readonly string[]'],
    [{ type: 'array', items: { type: ['string', 'null'] } }, 'readonly (string | null)[]'],
    [{ type: 'array', items: { type: 'array', items: { type: 'string' } } }, 'readonly (readonly string[])[]'],
    [{ type: 'array' }, 'readonly unknown[]'],
    [{ type: ['array', 'null'], items: { type: 'string' } }, 'readonly string[] | null'],
    [{ oneOf: [{ type: 'string' }, { $ref: '#/components/schemas/User' }] }, 'string | User'],
    [{ allOf: [{ $ref: '#/components/schemas/A' }, { anyOf: [{ const: 1 }, { const: 2 }] }] }, 'A & (1 | 2)'],
    [{ type: 'object' }, 'Readonly<Record<string, unknown>>'],
    [{ type: 'object', additionalProperties: false }, 'Readonly<Record<string, never>>'],
    [{ type: 'object', additionalProperties: { type: 'number' } }, 'Readonly<Record<string, number>>'],
    [
      { type: 'object', properties: { id: { type: 'string' }, 'a-b': { type: 'number' } }, required: ['id'] },
      "{ readonly id: string; readonly 'a-b'?: number; }",
    ],
    [
      { type: 'array', items: { type: 'object', properties: { a: { type: ['string', 'null'] } } } },
      'readonly { readonly a?: string | null; }[]',
    ],
    [
      { type: 'object', properties: { a: { type: 'string', description: 'Not */ code.' } } },
      '{ /** Not *\\/ code. */ readonly a?: string; }',
    ],
  ])('%j', (schema, type) => {
    expect(typed(schema)).toBe(type);
  });
});

describe('what is not known is an error that names it and its place', () => {
  it.each<[Json, string]>([
    [{ type: 'string', contentEncoding: 'base64' }, '#/here: contentEncoding of string is not known here'],
    [{ type: 'object', patternProperties: {} }, '#/here: patternProperties of object is not known here'],
    [{ type: 'array', prefixItems: [] }, '#/here: prefixItems of array is not known here'],
    [{ properties: {} }, '#/here: properties without type is not known here'],
    [{ if: {} }, '#/here: if without type is not known here'],
    [{ type: 'tuple' }, '#/here/type: "tuple" is not known here'],
    [{ $ref: 'https://example.com/schema' }, '#/here/$ref: "https://example.com/schema" is no component schema'],
    [{ $ref: '#/components/schemas/A', properties: {} }, '#/here: properties beside $ref is not known here'],
    [{ const: { a: 1 } }, '#/here/const: a constant that is no scalar is not known here'],
    [
      { type: 'object', properties: { a: {} }, additionalProperties: { type: 'string' } },
      '#/here/additionalProperties: a schema beside properties is not known here',
    ],
    [
      { type: 'object', properties: { 'a/b': { type: 'array', items: { nullable: true } } } },
      '#/here/properties/a~1b/items: nullable without type is not known here',
    ],
  ])('%j', (schema, message) => {
    expect(() => typed(schema)).toThrow(message);
  });
});

const OPERATION = {
  summary: 'Get it.',
  parameters: [
    { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
    { $ref: '#/components/parameters/Limit' },
    { name: 'If-Match', in: 'header', schema: { type: 'string' } },
  ],
  requestBody: { required: true, content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
  responses: {
    200: {
      description: 'It.',
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } }, 'text/csv': {} },
    },
    201: { $ref: '#/components/responses/Text' },
    204: { description: 'Nothing.' },
    404: { description: 'None.', content: { 'application/problem+json': { schema: { not: {} } } } },
  },
};

const documentOf = (operation: Json) => ({
  paths: { '/things/{id}': { put: operation } },
  components: {
    schemas: {
      Thing: { description: 'A thing.', type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    },
    parameters: { Limit: { name: 'limit', in: 'query', description: 'Rows.', schema: { type: 'integer' } } },
    responses: { Text: { description: 'Text.', content: { 'text/csv': { schema: { type: 'string' } } } } },
  },
});

describe('a document', () => {
  it('becomes its component schemas, and what each operation takes and answers on success', () => {
    expect(typesOfDocument(documentOf(OPERATION), '// head')).toBe(`// head
/** A thing. */
export type Thing = {
  readonly id: string;
};

export interface Paths {
  readonly '/things/{id}': {
    /** Get it. */
    readonly PUT: {
      readonly path: {
        readonly id: string;
      };
      readonly query?: {
        /** Rows. */
        readonly limit?: number | undefined;
      } | undefined;
      readonly body: Thing;
      readonly answers: {
        /** It. */
        readonly '200': Thing;
        /** Text. */
        readonly '201': string;
        /** Nothing. */
        readonly '204': undefined;
      };
    };
  };
}
`);
  });

  it.each<[string, Json]>([
    ['only leads elsewhere, which a browser follows', { ...OPERATION, responses: { 302: {}, 503: {} } }],
    [
      'takes a form and has no answer, which a provider sends',
      {
        ...OPERATION,
        requestBody: { content: { 'application/x-www-form-urlencoded': {} } },
        responses: { 200: { description: 'Done.' } },
      },
    ],
  ])('leave out an operation that %s', (_name, operation) => {
    expect(typesOfDocument(documentOf(operation), '')).not.toContain('/things/{id}');
    expect(typesOfDocument(documentOf(OPERATION), '')).toContain('/things/{id}');
  });

  it.each<[Json, string]>([
    [{ ...OPERATION, responses: { 404: {} } }, '/put/responses: there is no success'],
    [{ ...OPERATION, responses: { '2XX': {} } }, '/put/responses/2XX: a range of statuses is not known here'],
    [
      { ...OPERATION, responses: { 200: { content: { 'image/png': {} } } } },
      '/responses/200/content: image/png is not known here',
    ],
    [
      { ...OPERATION, requestBody: { content: { 'text/plain': {} } } },
      '/put/requestBody/content: text/plain is not known here',
    ],
    [{ ...OPERATION, parameters: [{ $ref: 'other.json' }] }, '/put/parameters/0: "other.json" is outside the document'],
  ])('with what is not known is refused, by its place (%#)', (operation, message) => {
    expect(() => typesOfDocument(documentOf(operation), '')).toThrow(`#/paths/~1things~1{id}`);
    expect(() => typesOfDocument(documentOf(operation), '')).toThrow(message);
  });
});
