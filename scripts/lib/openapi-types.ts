/**
 * The types of an OpenAPI 3.1 document: one for each schema among its components, and `Paths`, which tells of each
 * operation what it takes and what it answers on success. Parameters in headers are left out: the client has options
 * for those.
 */

import {
  comment,
  descriptionOf,
  type Json,
  type JsonObject,
  listAt,
  type Member,
  membersType,
  objectAt,
  pointerSegment,
  TypesError,
  typeOfSchema,
} from './schema-types.ts';

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const OF_PATHS = [...METHODS, 'parameters', 'summary', 'description'];
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
/** Takes what `JSON_TYPE` takes, where a body may be either. */
const MERGE_PATCH_TYPE = 'application/merge-patch+json';
/** What a body is read as when there is no JSON of it. */
const TEXT_TYPE = /^(?:text\/[\w.+-]+|application\/x-ndjson)\b/;

/**
 * @param head of the file
 * @throws TypesError naming what is not known here
 */
export function typesOfDocument(document: JsonObject, head: string): string {
  const schemas = objectAt(
    objectAt(document['components'] ?? {}, '#/components')['schemas'] ?? {},
    '#/components/schemas',
  );
  const types = Object.entries(schemas).map(([name, schema]) => {
    const at = `#/components/schemas/${pointerSegment(name)}`;
    if (!/^[A-Z][A-Za-z0-9]*$/.test(name) || name === 'Paths') throw new TypesError(at, 'is no name for a type');
    return `${comment(descriptionOf(schema), '')}export type ${name} = ${typeOfSchema(schema, at, '')};\n`;
  });
  const paths = Object.entries(objectAt(document['paths'], '#/paths')).flatMap(([path, item]) => {
    const at = `#/paths/${pointerSegment(path)}`;
    const type = pathType(document, objectAt(item, at), at);
    return type === undefined ? [] : [{ name: path, optional: false, type }];
  });
  return `${head}\n${[...types, `export interface Paths ${membersType(paths, '')}\n`].join('\n')}`;
}

/** Returns undefined for a path without operations of the client. */
function pathType(document: JsonObject, item: JsonObject, at: string): string | undefined {
  const unknown = Object.keys(item).filter((name) => !OF_PATHS.includes(name));
  if (unknown.length > 0) throw new TypesError(at, `${unknown.join(', ')} is not known here`);
  const shared = listAt(item['parameters'] ?? [], `${at}/parameters`);
  const operations = METHODS.flatMap((method) => {
    const operation = item[method];
    if (operation === undefined || !isOfClient(document, objectAt(operation, `${at}/${method}`), `${at}/${method}`))
      return [];
    const type = operationType(document, objectAt(operation, `${at}/${method}`), shared, `${at}/${method}`);
    const summary = objectAt(operation, at)['summary'];
    return [
      {
        name: method.toUpperCase(),
        optional: false,
        type,
        description: typeof summary === 'string' ? summary : undefined,
      },
    ];
  });
  return operations.length === 0 ? undefined : membersType(operations, '  ');
}

/**
 * Reports whether the client calls an operation: a browser follows redirects, and a provider sends a form that has no
 * answer.
 */
function isOfClient(document: JsonObject, { responses, requestBody }: JsonObject, at: string): boolean {
  const statuses = Object.keys(objectAt(responses, `${at}/responses`));
  if (statuses.some((status) => status.startsWith('3')) && !statuses.some((status) => status.startsWith('2')))
    return false;
  if (requestBody === undefined) return true;
  const { content } = resolved(document, requestBody, `${at}/requestBody`);
  if (!Object.hasOwn(objectAt(content, `${at}/requestBody/content`), FORM_TYPE)) return true;
  return statuses.some((status) => {
    const answer = resolved(document, objectAt(responses, at)[status] ?? {}, `${at}/responses/${status}`);
    return status.startsWith('2') && answer['content'] !== undefined;
  });
}

const INDENT = '    ';

function operationType(document: JsonObject, operation: JsonObject, shared: readonly Json[], at: string): string {
  const parameters = [...shared, ...listAt(operation['parameters'] ?? [], `${at}/parameters`)].map((each, index) =>
    resolved(document, each, `${at}/parameters/${index}`),
  );
  const inputs = [...parameterMembers(parameters, 'path', at), ...parameterMembers(parameters, 'query', at)];
  const body =
    operation['requestBody'] === undefined ? [] : [bodyMember(document, operation['requestBody'], `${at}/requestBody`)];
  const answers = Object.entries(objectAt(operation['responses'], `${at}/responses`))
    .filter(([status]) => status.startsWith('2'))
    .map(([status, answer]) => answerMember(document, status, answer, `${at}/responses/${status}`));
  if (answers.length === 0) throw new TypesError(`${at}/responses`, 'there is no success');
  const all = [...inputs, ...body, { name: 'answers', optional: false, type: membersType(answers, `${INDENT}  `) }];
  return membersType(all, INDENT);
}

function parameterMembers(parameters: readonly JsonObject[], where: 'path' | 'query', at: string): readonly Member[] {
  const members = parameters
    .filter((parameter) => parameter['in'] === where)
    .map((parameter, index) => {
      const { name, schema } = parameter;
      if (typeof name !== 'string' || schema === undefined)
        throw new TypesError(`${at}/parameters/${index}`, 'has no name or no schema');
      const optional = parameter['required'] !== true;
      const type = typeOfSchema(schema, `${at}/parameters/${index}/schema`, `${INDENT}    `);
      const description = descriptionOf(parameter) ?? descriptionOf(schema);
      return { name, optional, type: optional ? `${type} | undefined` : type, description };
    });
  if (members.length === 0) return [];
  const type = membersType(members, `${INDENT}  `);
  return [
    input(
      where,
      members.some(({ optional }) => !optional),
      type,
    ),
  ];
}

function bodyMember(document: JsonObject, body: Json, at: string): Member {
  const { content, required } = resolved(document, body, at);
  const media = objectAt(content, `${at}/content`);
  const types = Object.keys(media);
  const [type] = types;
  if ((type !== JSON_TYPE && type !== FORM_TYPE) || types.slice(1).some((type) => type !== MERGE_PATCH_TYPE))
    throw new TypesError(`${at}/content`, `${types.join(', ')} is not known here`);
  return input('body', required === true, mediaType(media, type, at, `${INDENT}  `));
}

/** What need not be given may be given as undefined. */
function input(name: string, required: boolean, type: string): Member {
  return { name, optional: !required, type: required ? type : `${type} | undefined` };
}

function answerMember(document: JsonObject, status: string, answer: Json, at: string): Member {
  if (!/^\d{3}$/.test(status)) throw new TypesError(at, 'a range of statuses is not known here');
  const { content, description } = resolved(document, answer, at);
  const media = objectAt(content ?? {}, `${at}/content`);
  const types = Object.keys(media);
  const member = {
    name: status,
    optional: false,
    description: typeof description === 'string' ? description : undefined,
  };
  if (types.length === 0) return { ...member, type: 'undefined' };
  if (types.includes(JSON_TYPE)) return { ...member, type: mediaType(media, JSON_TYPE, at, `${INDENT}    `) };
  const unknown = types.filter((type) => !TEXT_TYPE.test(type));
  if (unknown.length > 0) throw new TypesError(`${at}/content`, `${unknown.join(', ')} is not known here`);
  return { ...member, type: 'string' };
}

function mediaType(media: JsonObject, type: string, at: string, indent: string): string {
  const { schema } = objectAt(media[type], `${at}/content/${pointerSegment(type)}`);
  return typeOfSchema(schema ?? true, `${at}/content/${pointerSegment(type)}/schema`, indent);
}

/** What a `$ref` names among the components; anything else is itself. */
function resolved(document: JsonObject, value: Json, at: string): JsonObject {
  const found = objectAt(value, at);
  const { $ref: ref } = found;
  if (ref === undefined) return found;
  if (typeof ref !== 'string' || !ref.startsWith('#/'))
    throw new TypesError(at, `${JSON.stringify(ref)} is outside the document`);
  const target = ref
    .slice(2)
    .split('/')
    .reduce<Json | undefined>(
      (inside, name) => objectAt(inside, ref)[name.replaceAll('~1', '/').replaceAll('~0', '~')],
      document,
    );
  return objectAt(target, ref);
}
