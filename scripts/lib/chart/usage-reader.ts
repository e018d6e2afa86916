/** The Lua that reads the usage of answers, for the chart: the same text as in Envoy's own configuration. */

import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';

const LUA = 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua';

export async function usageReader(configuration: string): Promise<string> {
  const source = findSource(parse(await readFile(configuration, 'utf8'), { maxAliasCount: -1 }));
  if (source === undefined) throw new Error(`${configuration} has no Lua filter.`);
  return source;
}

function findSource(node: unknown): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  if ('@type' in node && node['@type'] === LUA && 'default_source_code' in node) return inlineString(node.default_source_code);
  for (const child of Object.values(node)) {
    const found = findSource(child);
    if (found !== undefined) return found;
  }
  return undefined;
}

function inlineString(source: unknown): string | undefined {
  return typeof source === 'object' && source !== null && 'inline_string' in source && typeof source.inline_string === 'string'
    ? source.inline_string
    : undefined;
}
