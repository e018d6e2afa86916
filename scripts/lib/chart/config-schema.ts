/**
 * The JSON Schema of `config` in the chart's values, made from the table of settings. A setting that the chart makes itself, and every secret,
 * is not in it, so the schema refuses it there.
 */

import { ALL_KEYS, KEYS } from '../../../src/config/keys.ts';
import type { Flaw, Raw } from '../../../src/config/parsers.ts';

export type Schema = { readonly [name: string]: unknown };

const MADE_BY_CHART: ReadonlySet<string> = new Set([
  'http.listen',
  'grpc.listen',
  'grpc.tls.cert-file',
  'grpc.tls.key-file',
  'grpc.tls.client-ca-file',
  'admin.listen',
  'data-dir',
]);

type Tree = Map<string, Tree | Schema>;

export function configSchema(): Schema {
  const tree: Tree = new Map();
  for (const key of Object.values(KEYS)) {
    if (MADE_BY_CHART.has(key.path) || (key.secret && key.path !== KEYS.ldapList.path)) continue;
    if (key.path === KEYS.ldapList.path) continue;
    put(
      tree,
      key.path.split('.'),
      leaf(key.help, key.defaultText, (raw) => key.parse(raw)),
    );
  }
  const { ldap, ...others } = properties(tree);
  const password = { type: 'string', description: 'File with the password of the service account; see secretFiles.' };
  const one = withMember(ldap, 'bind-password-file', password);
  return object({
    ...others,
    ldap: {
      description: 'One directory as a map, or several as a list of maps. A password comes from a file.',
      type: ['object', 'array'],
      ...pick(one, 'properties', 'additionalProperties'),
      items: one,
    },
  });
}

/** Every setting of `config`, with dots. */
export function configPaths(): readonly string[] {
  return ALL_KEYS.filter(({ path, secret }) => !MADE_BY_CHART.has(path) && !secret).map(({ path }) => path);
}

export function object(members: Readonly<Record<string, unknown>>, description?: string): Schema {
  return {
    ...(description === undefined ? {} : { description }),
    type: 'object',
    additionalProperties: false,
    properties: members,
  };
}

function put(tree: Tree, [first = '', ...rest]: readonly string[], schema: Schema): void {
  if (rest.length === 0) {
    tree.set(first, schema);
    return;
  }
  const known = tree.get(first);
  const inner: Tree = known instanceof Map ? known : new Map();
  tree.set(first, inner);
  put(inner, rest, schema);
}

function properties(tree: Tree): Record<string, Schema> {
  return Object.fromEntries(
    [...tree].map(([name, node]) => [name, node instanceof Map ? object(properties(node)) : node]),
  );
}

function withMember(schema: Schema | undefined, name: string, member: Schema): Schema {
  const known = schema?.['properties'];
  return object({ ...(typeof known === 'object' && known !== null ? known : {}), [name]: member });
}

function pick(schema: Schema, ...names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, schema[name]]));
}

type Parsed = { readonly kind: 'value' } | { readonly kind: 'flaws'; readonly flaws: readonly Flaw[] };

/** What the setting's own parser takes. A parser names what it expects, and that sentence tells numbers, flags and words apart. */
function leaf(help: string, defaultText: string | undefined, parse: (raw: Raw) => Parsed): Schema {
  const description = defaultText === undefined ? help : `${help} Default: ${defaultText}`;
  const takes = (raw: Raw): boolean => parse(raw).kind === 'value';
  if (takes({ kind: 'data', value: [] })) return { description, type: 'array', ...items(parse) };
  if (takes({ kind: 'data', value: {} })) return { description, type: 'object' };
  const expected = expectedText(parse({ kind: 'text', text: '\0' }));
  const range = /^a whole number from (\d+) to (\d+)$/.exec(expected);
  if (range !== null) return { description, type: 'integer', minimum: Number(range[1]), maximum: Number(range[2]) };
  if (expected === 'true or false') return { description, type: 'boolean' };
  const words = /^one of (.+)$/.exec(expected)?.[1]?.split(', ');
  if (words !== undefined) return { description, enum: words };
  if (/\bduration\b/.test(expected)) return { description, type: 'string', pattern: '^(0|[0-9]+(ms|s|m|h|d))$' };
  // A parser that looks into a list takes one text or several.
  const list = parse({ kind: 'data', value: ['\0'] });
  const takesList = list.kind === 'flaws' && list.flaws.some(({ at }) => at.length > 0);
  return takesList
    ? { description, type: ['string', 'array'], items: { type: 'string' } }
    : { description, type: 'string' };
}

/** A list of maps names their members in what it expects: `a list of routes {method, path}`. Any other list holds texts. */
function items(parse: (raw: Raw) => Parsed): Schema {
  const members = /\{([a-z, -]+)\}/.exec(expectedText(parse({ kind: 'data', value: 0 })))?.[1]?.split(', ');
  return {
    items: members === undefined ? { type: 'string' } : object(Object.fromEntries(members.map((name) => [name, {}]))),
  };
}

function expectedText(parsed: Parsed): string {
  return parsed.kind === 'flaws' ? (parsed.flaws[0]?.expected ?? '') : '';
}
