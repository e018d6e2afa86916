/** Compares real answers with the description of the API. An answer that differs fails its test. */

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { isObject } from '../../src/domain/json.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { describeApi } from '../../src/http/openapi/document.ts';
import type { Json } from '../../src/http/openapi/json.ts';

export interface SeenAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** @throws Error that says what the description does not know */
export type DescriptionCheck = (method: string, path: string, answer: SeenAnswer) => void;

/** The files of a worker mostly serve the same API, and compiling its schemas costs more than the requests of a file. */
const checks = new Map<string, DescriptionCheck>();

export function holdAgainstDescription(routes: readonly Endpoint[]): DescriptionCheck {
  const description = describeApi(routes);
  const text = JSON.stringify(description);
  const check = checks.get(text) ?? checkOf(closed(description));
  checks.set(text, check);
  return check;
}

function checkOf(api: Json): DescriptionCheck {
  // Each schema checks a few answers, so optimizing its code costs more than it saves; other tests check the schemas themselves.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, code: { optimize: false } });
  addFormats.default(ajv);
  const templates = templatesOf(api);
  ajv.addSchema(api, 'api');
  const compiled = new Map<string, ValidateFunction>();
  const validator = (pointer: string): ValidateFunction => {
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` });
    compiled.set(pointer, validate);
    return validate;
  };

  return (method, path, answer) => {
    const template = templateOf(templates, path);
    const asked = method === 'HEAD' ? 'get' : method.toLowerCase();
    const operation = template === undefined ? undefined : at(api, 'paths', template, asked);
    if (template === undefined || !isObject(operation)) return;
    const complain = (what: string): never => {
      throw new Error(`${method} ${path} answered ${answer.status} ${answer.body}, and the description ${what}`);
    };
    const described = resolved(api, at(operation, 'responses', String(answer.status)));
    if (described === undefined) return complain('knows no such status of it');
    for (const name of Object.keys(headersOf(described))) {
      const header = resolved(api, headersOf(described)[name]);
      if (header?.['required'] === true && answer.headers[name.toLowerCase()] === undefined)
        complain(`asks for ${name}`);
    }
    if (method === 'HEAD') return;
    const content = described['content'];
    if (content === undefined) return answer.body === '' ? undefined : complain('knows of no body');
    const type = String(answer.headers['content-type']);
    const known = Object.keys(isObject(content) ? content : {}).find(
      (each) => type === each || type.startsWith(`${each};`),
    );
    if (known === undefined) return complain(`does not know the media type ${type}`);
    if (!/[/+]json$/.test(known)) return;
    const where = pointerTo(api, ['paths', template, asked, 'responses', String(answer.status)]);
    const validate = validator(`${where}/content/${escaped(known)}/schema`);
    if (!validate(JSON.parse(answer.body))) complain(`says otherwise: ${ajv.errorsText(validate.errors)}`);
  };
}

/** The paths of the description by their segments. Of two that match a path, the earlier one has fewer parameters. */
function templatesOf(api: Json): readonly (readonly string[])[] {
  return Object.keys(isObject(api['paths']) ? api['paths'] : {})
    .map((template) => template.split('/'))
    .toSorted((a, b) => parametersIn(a) - parametersIn(b));
}

function parametersIn(template: readonly string[]): number {
  return template.filter((part) => part.startsWith('{')).length;
}

/** The template of a path, as the description writes it. */
function templateOf(templates: readonly (readonly string[])[], path: string): string | undefined {
  const segments = (path.split('?', 1)[0] ?? '').replace(/(?<=.)\/$/, '').split('/');
  return templates
    .find(
      (parts) =>
        parts.length === segments.length && parts.every((part, i) => part.startsWith('{') || part === segments[i]),
    )
    ?.join('/');
}

/**
 * In tests a member that is not described is an error, although clients are to pass over those that they do not know.
 */
function closed(value: Json): Json {
  const walked = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, closedMember(member)]));
  const open =
    value['type'] === 'object' && isObject(value['properties']) && value['additionalProperties'] === undefined;
  return open ? { ...walked, additionalProperties: false } : walked;
}

function closedMember(member: unknown): unknown {
  if (Array.isArray(member)) return member.map(closedMember);
  return isObject(member) ? closed(member) : member;
}

function headersOf(answer: Json): Json {
  return isObject(answer['headers']) ? answer['headers'] : {};
}

function at(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);
}

function resolved(api: Json, value: unknown): Json | undefined {
  if (!isObject(value)) return undefined;
  const reference = value['$ref'];
  return typeof reference === 'string' ? resolved(api, at(api, ...reference.slice(2).split('/'))) : value;
}

/** The pointer of a place, through one reference at its end. */
function pointerTo(api: Json, names: readonly string[]): string {
  const value = at(api, ...names);
  const reference = isObject(value) ? value['$ref'] : undefined;
  return typeof reference === 'string' ? reference.slice(1) : `/${names.map(escaped).join('/')}`;
}

/** As a JSON pointer in a URI fragment. */
function escaped(name: string): string {
  return encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
}
