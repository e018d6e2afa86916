/** The body as JSON.parse and plain strings read it: the obvious twin of the byte reader. */

export interface NaiveBody {
  readonly model: string | undefined;
  readonly collections: readonly string[];
  readonly limits: readonly number[];
  readonly choices: number;
}

const LISTED = [
  'model',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'best_of',
  'stream',
  'collection',
  'collections',
];
const LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** Members of the outermost object of a text that is known to be JSON: each name with the text of its value. */
function members(text: string): (readonly [name: string, value: string])[] {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  const found: [string, string][] = [];
  let depth = 0;
  let name: string | undefined;
  for (const token of tokens) {
    if (token === '}' || token === ']') depth--;
    if (depth === 1 && token === ',') name = undefined;
    else if (depth === 1 && name === undefined && token.startsWith('"')) {
      name = JSON.parse(token);
      found.push([String(name), '']);
    } else if (depth >= 1 && !(depth === 1 && token === ':' && found.at(-1)?.[1] === '')) {
      const last = found.at(-1);
      if (last !== undefined) last[1] += token;
    }
    if (token === '{' || token === '[') depth++;
  }
  return found;
}

function sameButForCase(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase() || left.toUpperCase() === right.toUpperCase();
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !/\p{Cc}/u.test(value) && value.isWellFormed() && bytesOf(value) <= 512;
}

/** undefined = malformed. */
export function naiveBody(bytes: Uint8Array): NaiveBody | undefined {
  let parsed: unknown;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed) || depthOf(parsed) > 128) return undefined;
  const found = members(text);
  if (found.length > 256 || found.some(([name]) => bytesOf(name) > 512)) return undefined;
  if (new Set(found.map(([name]) => name)).size !== found.length) return undefined;
  if (found.some(([name]) => LISTED.some((listed) => listed !== name && sameButForCase(listed, name)))) return undefined;
  const raw = new Map(found.filter(([name, value]) => LISTED.includes(name) && value !== 'null'));
  for (const name of [...LIMITS, 'n', 'best_of']) if (raw.has(name) && !/^[0-9]+$/.test(raw.get(name) ?? '')) return undefined;
  if (raw.has('stream') && !['true', 'false'].includes(raw.get('stream') ?? '')) return undefined;
  const value = (name: string): unknown => (raw.has(name) ? JSON.parse(raw.get(name) ?? '') : undefined);
  const [model, collection, collections] = [value('model'), value('collection'), value('collections') ?? []];
  if ((model !== undefined && !isName(model)) || (collection !== undefined && !isName(collection))) return undefined;
  if (!Array.isArray(collections) || !collections.every(isName)) return undefined;
  if (collections.length + (collection === undefined ? 0 : 1) > 64) return undefined;
  if (Number(raw.get('n') ?? 0) > 128 || Number(raw.get('best_of') ?? 0) > 128) return undefined;
  const number = (name: string) => Math.min(Number(raw.get(name) ?? 0), Number.MAX_SAFE_INTEGER);
  return {
    model,
    collections: [...(collection === undefined ? [] : [collection]), ...collections],
    limits: LIMITS.filter((name) => raw.has(name)).map(number),
    choices: Math.max(1, number('n'), number('best_of')),
  };
}
