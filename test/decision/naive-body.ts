/** The body as JSON.parse and plain strings read it: the obvious twin of the byte reader. */

export interface NaiveBody {
  readonly model: string | undefined;
  readonly collections: readonly string[];
  readonly limits: readonly number[];
  readonly choices: number;
  readonly prompts: number;
  /** False for a stream that is not asked, in one certain way, for its usage. */
  readonly reportsUsage: boolean;
  readonly promptTokens: number;
  readonly inlineFiles: number;
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

/** The bytes of a text in UTF-8, where each half of a surrogate pair has two, also without the other one. */
function textBytes(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    bytes += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 2 : 3;
  }
  return bytes;
}

const FILE_MEMBERS = ['url', 'image_url', 'data', 'file_data'];

/** Reports whether the value of a member is an inline file, as the documentation states the rule. */
function isFile(name: string | undefined, value: string): boolean {
  if (name === undefined || !FILE_MEMBERS.includes(name) || value.length < 256) return false;
  return /^(data:[\w!#$&^.+/;=-]{0,127};base64,)?[A-Za-z0-9+/_-]*={0,2}$/.test(value);
}

/** All pieces of text in a value, and the number of its inline files. A number in a list is a piece of four bytes. */
function piecesOf(
  value: unknown,
  name: string | undefined,
  isTop: boolean,
): { readonly text: readonly string[]; readonly files: number } {
  if (typeof value === 'string') return isFile(name, value) ? { text: [], files: 1 } : { text: [value], files: 0 };
  const inside = Array.isArray(value)
    ? value.map((item) => (typeof item === 'number' ? { text: ['1234'], files: 0 } : piecesOf(item, undefined, false)))
    : typeof value === 'object' && value !== null
      ? Object.entries(value).map(([key, item]) => {
          const { text, files } = piecesOf(item, key, false);
          return { text: isTop ? text : [key, ...text], files };
        })
      : [];
  return { text: inside.flatMap(({ text }) => text), files: inside.reduce((sum, { files }) => sum + files, 0) };
}

/** How many prompts there are; undefined = none of the forms of `prompt`. */
function promptsIn(prompt: unknown): number | undefined {
  if (prompt === undefined || typeof prompt === 'string') return 1;
  if (!Array.isArray(prompt)) return undefined;
  if (prompt.every((item) => typeof item === 'number')) return 1;
  const same = prompt.every((item) => typeof item === 'string') || prompt.every((item) => Array.isArray(item));
  return same && prompt.length <= 2048 ? prompt.length : undefined;
}

/** Whether every reader of the members finds `stream_options.include_usage: true` in them. */
function asksForUsage(found: ReturnType<typeof members>): boolean {
  const only = (list: typeof found, name: string) => {
    const [first, ...others] = list.filter(([one]) => sameButForCase(one, name));
    return others.length === 0 && first?.[0] === name ? first[1] : '';
  };
  const options = only(found, 'stream_options');
  return options.startsWith('{') && only(members(options), 'include_usage') === 'true';
}

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

function isName(value: unknown): value is string {
  return (
    typeof value === 'string' && value !== '' && !/\p{Cc}/u.test(value) && value.isWellFormed() && bytesOf(value) <= 512
  );
}

/** undefined = malformed. */
export function naiveBody(bytes: Uint8Array, readsPrompts: boolean): NaiveBody | undefined {
  const listed = readsPrompts ? [...LISTED, 'prompt'] : LISTED;
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
  if (found.some(([name]) => listed.some((one) => one !== name && sameButForCase(one, name)))) return undefined;
  const raw = new Map(found.filter(([name, value]) => listed.includes(name) && value !== 'null'));
  for (const name of [...LIMITS, 'n', 'best_of'])
    if (raw.has(name) && !/^[0-9]+$/.test(raw.get(name) ?? '')) return undefined;
  if (raw.has('stream') && !['true', 'false'].includes(raw.get('stream') ?? '')) return undefined;
  const value = (name: string): unknown => (raw.has(name) ? JSON.parse(raw.get(name) ?? '') : undefined);
  const [model, collection, collections] = [value('model'), value('collection'), value('collections') ?? []];
  if ((model !== undefined && !isName(model)) || (collection !== undefined && !isName(collection))) return undefined;
  if (!Array.isArray(collections) || !collections.every(isName)) return undefined;
  if (collections.length + (collection === undefined ? 0 : 1) > 64) return undefined;
  if (Number(raw.get('n') ?? 0) > 128 || Number(raw.get('best_of') ?? 0) > 128) return undefined;
  const prompts = promptsIn(value('prompt'));
  if (prompts === undefined) return undefined;
  const pieces = piecesOf(parsed, undefined, true);
  const number = (name: string) => Math.min(Number(raw.get(name) ?? 0), Number.MAX_SAFE_INTEGER);
  return {
    model,
    collections: [...(collection === undefined ? [] : [collection]), ...collections],
    limits: LIMITS.filter((name) => raw.has(name)).map(number),
    choices: Math.max(1, number('n'), number('best_of')),
    prompts,
    reportsUsage: raw.get('stream') !== 'true' || asksForUsage(found),
    promptTokens: Math.ceil(pieces.text.map(textBytes).reduce((sum, bytes) => sum + bytes, 0) / 4),
    inlineFiles: pieces.files,
  };
}
