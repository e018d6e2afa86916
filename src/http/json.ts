/** Reads a request body as JSON, more strictly than JSON.parse: RFC 8259 in UTF-8, no repeated member (section 4), bounded depth. */

const MAX_DEPTH = 32;

export type JsonResult =
  | { readonly kind: 'json'; readonly value: unknown }
  | { readonly kind: 'error'; readonly message: string };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function parseJson(bytes: Uint8Array): JsonResult {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return { kind: 'error', message: 'The body is not valid UTF-8.' };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'error', message: 'The body is not valid JSON.' };
  }
  const problem = structureProblem(text);
  return problem === undefined ? { kind: 'json', value } : { kind: 'error', message: problem };
}

/** Walks text that is known to be valid JSON; JSON.parse keeps the last of repeated members and tells nobody. */
function structureProblem(text: string): string | undefined {
  /** One entry per open bracket: the members seen, or undefined in an array. */
  const open: (Set<string> | undefined)[] = [];
  let atKey = false;
  for (let i = 0; i < text.length; i++) {
    switch (text[i]) {
      case '{':
      case '[':
        atKey = text[i] === '{';
        open.push(atKey ? new Set() : undefined);
        if (open.length > MAX_DEPTH) return `The body is nested more than ${MAX_DEPTH} deep.`;
        break;
      case '}':
      case ']':
        open.pop();
        atKey = false;
        break;
      case ',':
        atKey = open.at(-1) !== undefined;
        break;
      case '"': {
        const end = endOfString(text, i);
        if (atKey) {
          const name: unknown = JSON.parse(text.slice(i, end + 1));
          const seen = open.at(-1);
          if (typeof name === 'string' && seen !== undefined) {
            if (seen.has(name)) return 'The body repeats a member of an object.';
            seen.add(name);
          }
          atKey = false;
        }
        i = end;
        break;
      }
      default:
    }
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}

/**
 * JSON pointers (RFC 6901) of all texts that cannot be stored: with NUL, which PostgreSQL has no place for, or with a lone surrogate,
 * which is no character. Member names count as the text of their member.
 */
export function unstorable(value: unknown, pointer = ''): readonly string[] {
  if (typeof value === 'string') return isStorable(value) ? [] : [pointer];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const at = `${pointer}/${escapePointer(name)}`;
    return isStorable(name) ? unstorable(member, at) : [at];
  });
}

export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** One member name as a segment of a JSON pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
