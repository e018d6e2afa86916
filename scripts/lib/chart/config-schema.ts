/**
 * The JSON Schema of `config` in the chart's values, made from the table of settings. It does not have the settings
 * that the chart sets, nor secrets, so that the chart rejects them there.
 */

import type { JsonSchema } from '../../../src/config/parsers.ts';
import type { Setting } from '../../../src/config/setting.ts';
import { ALL_SETTINGS } from '../../../src/config/settings.ts';

type Tree = Map<string, Tree | JsonSchema>;

/** @param settings default: those of the server */
export function configSchema(settings: readonly Setting<unknown>[] = ALL_SETTINGS): JsonSchema {
  const tree: Tree = new Map();
  for (const { path, parser, help, defaultText } of inConfig(settings)) {
    const description = defaultText === undefined ? help : `${help} Default: ${defaultText}`;
    put(tree, path.split('.'), { description, ...parser.schema });
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
  return inConfig(ALL_SETTINGS).map(({ path }) => path);
}

/** The settings that the chart sets itself. */
export function pathsOfChart(): readonly string[] {
  return ALL_SETTINGS.filter(({ setByChart }) => setByChart).map(({ path }) => path);
}

function inConfig(settings: readonly Setting<unknown>[]): readonly Setting<unknown>[] {
  return settings.filter(({ secret, setByChart }) => !secret && !setByChart);
}

export function object(members: Readonly<Record<string, unknown>>, description?: string): JsonSchema {
  return {
    ...(description === undefined ? {} : { description }),
    type: 'object',
    additionalProperties: false,
    properties: members,
  };
}

function put(tree: Tree, [first = '', ...rest]: readonly string[], schema: JsonSchema): void {
  if (rest.length === 0) {
    tree.set(first, schema);
    return;
  }
  const known = tree.get(first);
  const inner: Tree = known instanceof Map ? known : new Map();
  tree.set(first, inner);
  put(inner, rest, schema);
}

function properties(tree: Tree): Record<string, JsonSchema> {
  return Object.fromEntries(
    [...tree].map(([name, node]) => [name, node instanceof Map ? object(properties(node)) : node]),
  );
}

function withMember(schema: JsonSchema | undefined, name: string, member: JsonSchema): JsonSchema {
  const known = schema?.['properties'];
  return object({ ...(typeof known === 'object' && known !== null ? known : {}), [name]: member });
}

function pick(schema: JsonSchema, ...names: readonly string[]): JsonSchema {
  return Object.fromEntries(names.map((name) => [name, schema[name]]));
}
