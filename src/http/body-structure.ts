/**
 * Checks the structure of a JSON text against bounds before it is parsed, in one pass over the text. JSON.parse, the
 * schemas and the use cases cost time per value, not per byte: 1 MiB can hold 350,000 empty arrays, or one object with
 * 130,000 members. The pass stops at the first violation, so the cost of rejecting such a body does not grow with its
 * size.
 *
 * The text need not be valid JSON. A text that passes has at most `maxDepth`, `maxMembers` and `maxValues`, and repeats
 * no member.
 *
 * No name may end with a backslash. After JSON.parse of V8 14 has read such a name once, it can read other names with
 * an escape at the same place as that name (https://github.com/nodejs/node/issues/63785), so one caller could change
 * the names that another caller sends.
 */

export const BODY_BOUNDS = {
  /** The nesting depth of arrays and objects. */
  maxDepth: 32,
  /** Members of one object; the largest object of any schema has fewer than half of them. */
  maxMembers: 64,
  /**
   * Objects, arrays and values separated by commas, in the whole text. The largest batch is an import of 1,000 keys. A
   * key with all members and the largest metadata has about 60.
   */
  maxValues: 64_000,
  /**
   * Characters between the quotes of a member's name, as written: a name of metadata, each character as two escapes.
   */
  maxNameLength: 64 * 12,
} as const;

type Bounds = Readonly<Record<keyof typeof BODY_BOUNDS, number>>;

type BodyStructure =
  | { readonly kind: 'within'; readonly values: number }
  /** Not JSON that the API accepts: nested too deeply, or an object repeats a member. */
  | { readonly kind: 'unreadable'; readonly message: string; readonly readTo: number }
  /** JSON with a structure that no schema accepts. */
  | { readonly kind: 'excessive'; readonly message: string; readonly readTo: number };

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** An open object. The stack holds undefined for an open array. */
interface OpenObject {
  members: number;
  /** Created at the second member, because most objects of a hostile body have at most one. */
  names: Set<string> | undefined;
  first: string | undefined;
}

/**
 * Checks the structure of a text. `readTo` is the index of the character with the violation; the function reads no
 * later character.
 */
export function structureOf(text: string, bounds: Bounds = BODY_BOUNDS): BodyStructure {
  const { maxDepth, maxMembers, maxValues, maxNameLength } = bounds;
  const open: (OpenObject | undefined)[] = [];
  let object: OpenObject | undefined;
  let atName = false;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        atName = text.charCodeAt(i) === OPEN_OBJECT;
        object = atName ? { members: 0, names: undefined, first: undefined } : undefined;
        if (open.push(object) > maxDepth) {
          return violation('unreadable', `The body is nested more than ${maxDepth} deep.`, i);
        }
        values++;
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        open.pop();
        object = open.at(-1);
        atName = false;
        break;
      case COMMA:
        atName = object !== undefined;
        values++;
        break;
      case QUOTE: {
        const start = i + 1;
        if (!atName || object === undefined) {
          i = endOfString(text, start, text.length);
          break;
        }
        atName = false;
        i = endOfString(text, start, Math.min(text.length, start + maxNameLength + 1));
        if (i - start > maxNameLength) {
          return violation('excessive', `A member's name is longer than ${maxNameLength} characters.`, i);
        }
        const name = nameIn(text.slice(start, i));
        if (name.endsWith('\\') && text.charCodeAt(i) === QUOTE) {
          return violation('unreadable', "A member's name ends with a backslash. Choose another name.", i);
        }
        if (!addName(object, name)) {
          return violation('unreadable', 'The body repeats a member of an object.', i);
        }
        if (object.members > maxMembers) {
          return violation('excessive', `An object of the body has more than ${maxMembers} members.`, i);
        }
        break;
      }
      default:
    }
    if (values > maxValues) {
      return violation('excessive', `The body holds more than ${maxValues} values.`, i);
    }
  }
  return { kind: 'within', values };
}

function violation(kind: 'unreadable' | 'excessive', message: string, readTo: number): BodyStructure {
  return { kind, message, readTo };
}

/** Returns the index of the closing quote. If there is none before `limit`, returns an index of at least `limit`. */
function endOfString(text: string, start: number, limit: number): number {
  let i = start;
  while (i < limit) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) return i;
    i += code === BACKSLASH ? 2 : 1;
  }
  return i;
}

/**
 * Returns the unescaped name, since `"a"` and `"\u0061"` are the same name. If it cannot be unescaped, JSON.parse
 * rejects the body as well.
 */
function nameIn(written: string): string {
  if (!written.includes('\\')) return written;
  try {
    return String(JSON.parse(`"${written}"`));
  } catch {
    return written;
  }
}

/** Returns false if the object has the name already. */
function addName(object: OpenObject, name: string): boolean {
  object.members++;
  if (object.first === undefined) {
    object.first = name;
    return true;
  }
  object.names ??= new Set([object.first]);
  if (object.names.has(name)) return false;
  object.names.add(name);
  return true;
}
