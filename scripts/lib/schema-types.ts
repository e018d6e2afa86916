/**
 * JSON Schema (2020-12) as TypeScript types: the part of it that the project's own API description uses. Anything else
 * is an error that names it, so that a type never says less than the schema without anybody noticing.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

/** `#/paths/~1v1~1users/get: …` */
export class TypesError extends Error {
  override readonly name = 'TypesError';

  constructor(at: string, problem: string) {
    super(`${at}: ${problem}`);
  }
}

/** They narrow values within a type, or tell people something. */
const WITHOUT_EFFECT = new Set([
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly', '$comment'],
  ...[
    'format',
    'pattern',
    'minLength',
    'maxLength',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
  ],
  ...[
    'minItems',
    'maxItems',
    'uniqueItems',
    'minProperties',
    'maxProperties',
    'propertyNames',
    'contentMediaType',
    'not',
  ],
]);
/** They decide the type alone: beside one of them stands nothing that has an effect. */
const DECIDING = ['$ref', 'const', 'enum', 'oneOf', 'anyOf', 'allOf'] as const;
const OF_OBJECTS = ['properties', 'required', 'additionalProperties'];
const COMPONENT = /^#\/components\/schemas\/([A-Za-z0-9]+)$/;

/**
 * @param at JSON pointer to the schema, for errors
 * @param indent of the line that the type begins in
 * @throws TypesError
 */
export function typeOfSchema(schema: Json, at: string, indent: string): string {
  if (schema === true) return 'unknown';
  if (schema === false) return 'never';
  const { type, ...members } = objectAt(schema, at);
  const effective = Object.keys(members).filter((keyword) => !WITHOUT_EFFECT.has(keyword));
  const deciding = DECIDING.find((keyword) => keyword in members);
  if (deciding !== undefined) {
    const besides = effective.filter((keyword) => keyword !== deciding);
    if (besides.length > 0) throw new TypesError(at, `${besides.join(', ')} beside ${deciding} is not known here`);
    return decided(deciding, members[deciding] ?? null, `${at}/${deciding}`, indent);
  }
  if (type === undefined) {
    if (effective.length > 0) throw new TypesError(at, `${effective.join(', ')} without type is not known here`);
    return 'unknown';
  }
  const types = typeof type === 'string' ? [type] : listAt(type, `${at}/type`);
  const known = [...(types.includes('object') ? OF_OBJECTS : []), ...(types.includes('array') ? ['items'] : [])];
  const unknown = effective.filter((keyword) => !known.includes(keyword));
  if (unknown.length > 0) throw new TypesError(at, `${unknown.join(', ')} of ${types.join(', ')} is not known here`);
  return types.map((each) => typeNamed(each, members, at, indent)).join(' | ');
}

function decided(keyword: (typeof DECIDING)[number], value: Json, at: string, indent: string): string {
  switch (keyword) {
    case '$ref': {
      const name = typeof value === 'string' ? COMPONENT.exec(value)?.[1] : undefined;
      if (name === undefined) throw new TypesError(at, `${JSON.stringify(value)} is no component schema`);
      return name;
    }
    case 'const':
      return literal(value, at);
    case 'enum':
      return listAt(value, at)
        .map((each) => literal(each, at))
        .join(' | ');
    case 'oneOf':
    case 'anyOf':
      return parts(value, at, indent).join(' | ');
    case 'allOf':
      return parts(value, at, indent).map(grouped).join(' & ');
    default:
      return keyword satisfies never;
  }
}

function parts(value: Json, at: string, indent: string): readonly string[] {
  return listAt(value, at).map((part, index) => typeOfSchema(part, `${at}/${index}`, indent));
}

function typeNamed(type: Json, schema: JsonObject, at: string, indent: string): string {
  switch (type) {
    case 'string':
    case 'boolean':
    case 'number':
    case 'null':
      return type;
    case 'integer':
      return 'number';
    case 'array':
      return `readonly ${grouped(typeOfSchema(schema['items'] ?? true, `${at}/items`, indent))}[]`;
    case 'object':
      return objectType(schema, at, indent);
    default:
      throw new TypesError(`${at}/type`, `${JSON.stringify(type)} is not known here`);
  }
}

/** An object that is open beside its known members is typed by those: what it may hold besides, nobody can name. */
function objectType(schema: JsonObject, at: string, indent: string): string {
  const { properties, additionalProperties: rest } = schema;
  if (properties === undefined || Object.keys(objectAt(properties, `${at}/properties`)).length === 0) {
    if (rest === false) return 'Readonly<Record<string, never>>';
    return `Readonly<Record<string, ${typeOfSchema(rest ?? true, `${at}/additionalProperties`, indent)}>>`;
  }
  if (typeof rest === 'object' && Object.keys(objectAt(rest, `${at}/additionalProperties`)).length > 0) {
    throw new TypesError(`${at}/additionalProperties`, 'a schema beside properties is not known here');
  }
  const required = listAt(schema['required'] ?? [], `${at}/required`);
  const members = Object.entries(objectAt(properties, `${at}/properties`)).map(([name, member]) => ({
    name,
    optional: !required.includes(name),
    type: typeOfSchema(member, `${at}/properties/${pointerSegment(name)}`, `${indent}  `),
    description: descriptionOf(member),
  }));
  return membersType(members, indent);
}

export interface Member {
  readonly name: string;
  readonly optional: boolean;
  readonly type: string;
  readonly description?: string | undefined;
}

/** An object type, a member a line. */
export function membersType(members: readonly Member[], indent: string): string {
  const lines = members.map(
    ({ name, optional, type, description }) =>
      `${comment(description, `${indent}  `)}${indent}  readonly ${propertyName(name)}${optional ? '?' : ''}: ${type};\n`,
  );
  return `{\n${lines.join('')}${indent}}`;
}

/** A doc comment on lines of its own; empty when there is nothing to say. */
export function comment(text: string | undefined, indent: string): string {
  return text === undefined ? '' : `${indent}/** ${text.replaceAll('*/', '*\\/').replace(/\s+/g, ' ')} */\n`;
}

export function descriptionOf(schema: Json): string | undefined {
  const text = typeof schema === 'object' && schema !== null && !isList(schema) ? schema['description'] : undefined;
  return typeof text === 'string' ? text : undefined;
}

function propertyName(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
}

function literal(value: Json, at: string): string {
  if (typeof value === 'object' && value !== null)
    throw new TypesError(at, 'a constant that is no scalar is not known here');
  return typeof value === 'string' ? quoted(value) : String(value);
}

function quoted(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
}

/** In parentheses where what follows would bind closer. */
function grouped(type: string): string {
  return / [|&] |^readonly /.test(type.replace(/\{[\s\S]*\}/g, '{}')) ? `(${type})` : type;
}

export function objectAt(value: Json | undefined, at: string): JsonObject {
  if (typeof value !== 'object' || value === null || isList(value)) throw new TypesError(at, 'is no object');
  return value;
}

export function listAt(value: Json | undefined, at: string): readonly Json[] {
  if (!isList(value)) throw new TypesError(at, 'is no list');
  return value;
}

/** `Array.isArray` does not narrow to a list that is read-only. */
function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** One segment of a JSON pointer (RFC 6901). */
export function pointerSegment(segment: string): string {
  return segment.replaceAll('~', '~0').replaceAll('/', '~1');
}
