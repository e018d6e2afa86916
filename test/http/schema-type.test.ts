import { expect, expectTypeOf, it } from 'vitest';
import { type Static, Type } from '../../src/iam/schema/type.ts';

it('an object requires its members, except the optional ones', () => {
  const schema = Type.Object({ a: Type.String(), b: Type.Optional(Type.Integer({ minimum: 1 })) }, { title: 'T' });
  expect(schema).toEqual({
    type: 'object',
    required: ['a'],
    properties: { a: { type: 'string' }, b: { type: 'integer', minimum: 1 } },
    title: 'T',
  });
  expectTypeOf<Static<typeof schema>>().toEqualTypeOf<{ a: string; b?: number }>();
});

it('an object of optional members requires none', () => {
  const schema = Type.Partial({ a: Type.String() });
  expect(schema).toEqual({ type: 'object', properties: { a: { type: 'string' } } });
  expectTypeOf<Static<typeof schema>>().toEqualTypeOf<{ a?: string }>();
});

it('a schema that is the base of an optional one, or its copy, stays required', () => {
  const text = Type.String();
  const optional = Type.Optional(text);
  expect(Type.Object({ text, copy: Type.Unsafe<string>(optional) })).toMatchObject({ required: ['text', 'copy'] });
});

it('lists and unions have the types of their schemas', () => {
  const schema = Type.Array(Type.Union([Type.String(), Type.Null()]), { maxItems: 2 });
  expect(schema).toEqual({ type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] }, maxItems: 2 });
  expectTypeOf<Static<typeof schema>>().toEqualTypeOf<(string | null)[]>();
});
