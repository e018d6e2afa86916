/** Reads the top-level member names of one body, and rejects repeated names. */

import { type JsonText, MAX_ESCAPE_BYTES, textOf } from './json-bytes.ts';
import { MAX_RESOURCE_NAME } from './limits.ts';

const READ_MEMBERS = [
  'model',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'best_of',
  'stream',
  'collection',
  'collections',
  'prompt',
  'stream_options',
] as const;
export type ReadMember = (typeof READ_MEMBERS)[number];

type MemberName =
  | { readonly kind: 'read'; readonly name: ReadMember; readonly bit: number }
  | { readonly kind: 'other' }
  /** Equal to a name that is read except for case: some readers would take it for that name. */
  | { readonly kind: 'variant'; readonly name: ReadMember };

const OTHER: MemberName = { kind: 'other' };
const READ: ReadonlyMap<string, MemberName> = new Map(
  READ_MEMBERS.map((name, index) => [name, Object.freeze({ kind: 'read', name, bit: 1 << index })]),
);
const VARIANT: ReadonlyMap<string, MemberName> = new Map(
  READ_MEMBERS.map((name) => [name.toUpperCase(), Object.freeze({ kind: 'variant', name })]),
);

interface Candidate {
  readonly text: string;
  readonly equal: MemberName;
  readonly variant: MemberName;
}

/** Names that are read, by their length in bytes. */
const BY_LENGTH: readonly (readonly Candidate[] | undefined)[] = Array.from({ length: 32 }, (_, length) => {
  const names = READ_MEMBERS.filter((name) => name.length === length).map((text) => ({
    text,
    equal: READ.get(text) ?? OTHER,
    variant: VARIANT.get(text.toUpperCase()) ?? OTHER,
  }));
  return names.length === 0 ? undefined : names;
});

/**
 * Case folding wide enough for every reader that matches members without regard to case: lower case, then upper case
 * takes the Kelvin sign to `K` and the long s to `S` (as Go's encoding/json does) and the dotless i to `I` (as Java
 * does); the dotted capital I goes first.
 */
export function fold(text: string): string {
  return text.replaceAll('\u0130', 'i').toLowerCase().toUpperCase();
}

function classifyText(text: string): MemberName {
  return READ.get(text) ?? VARIANT.get(fold(text)) ?? OTHER;
}

/** 0 = another name, 1 = equal except for case, 2 = equal. */
function compare({ bytes }: JsonText, start: number, name: string): number {
  let equal = 2;
  for (let i = 0; i < name.length; i++) {
    const code = bytes[start + i] ?? 0;
    const wanted = name.charCodeAt(i);
    if (code === wanted) continue;
    // Among the bytes of these names, only letters have a partner 0x20 below; `_` must be equal.
    if ((code | 0x20) !== wanted || wanted < 0x61 || wanted > 0x7a) return 0;
    equal = 1;
  }
  return equal;
}

function classifyPlain(text: JsonText, start: number, length: number): MemberName {
  const candidates = BY_LENGTH[length];
  if (candidates === undefined) return OTHER;
  for (const candidate of candidates) {
    const equal = compare(text, start, candidate.text);
    if (equal > 0) return equal === 2 ? candidate.equal : candidate.variant;
  }
  return OTHER;
}

function sameBytes({ bytes }: JsonText, left: number, right: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (bytes[left + i] !== bytes[right + i]) return false;
  return true;
}

/**
 * The largest number of names that are compared with each other. Further names, and names with escapes, go into a set.
 */
const MAX_COMPARED = 12;

/** Starts and lengths of the plain names. Shared between bodies, which never overlap. */
const starts = new Int32Array(MAX_COMPARED);
const lengths = new Int32Array(MAX_COMPARED);

interface SeenNames {
  /** True if `prompt` is one of the members that are read. */
  readonly readsPrompts: boolean;
  /** Bits of the members that are read. */
  read: number;
  compared: number;
  texts: Set<string> | undefined;
}

export function noNames(readsPrompts: boolean): SeenNames {
  return { readsPrompts, read: 0, compared: 0, texts: undefined };
}

function repeatsPlain(seen: SeenNames, text: JsonText, start: number, length: number): boolean {
  for (let i = 0; i < seen.compared; i++) {
    if (lengths[i] === length && sameBytes(text, starts[i] ?? 0, start, length)) return true;
  }
  starts[seen.compared] = start;
  lengths[seen.compared] = length;
  seen.compared++;
  return false;
}

function repeatsText(seen: SeenNames, text: JsonText, name: string): boolean {
  if (seen.texts === undefined) {
    seen.texts = new Set();
    for (let i = 0; i < seen.compared; i++) {
      const start = starts[i] ?? 0;
      seen.texts.add(textOf(text, start, start + (lengths[i] ?? 0)));
    }
  }
  const known = seen.texts.size;
  return seen.texts.add(name).size === known;
}

/**
 * Adds one name, between its quotes.
 * @param plain true if every byte represents itself: ASCII, no escape
 * @returns undefined if the name is a repetition in any spelling
 */
export function takeName(
  seen: SeenNames,
  text: JsonText,
  start: number,
  end: number,
  plain: boolean,
): MemberName | 'too long' | undefined {
  if (end - start > (plain ? 1 : MAX_ESCAPE_BYTES) * MAX_RESOURCE_NAME) return 'too long';
  const unescaped = plain ? undefined : textOf(text, start, end);
  if (unescaped !== undefined && Buffer.byteLength(unescaped) > MAX_RESOURCE_NAME) return 'too long';
  const known = unescaped === undefined ? classifyPlain(text, start, end - start) : classifyText(unescaped);
  const name = !seen.readsPrompts && known.kind !== 'other' && known.name === 'prompt' ? OTHER : known;
  if (name.kind === 'read') {
    if ((seen.read & name.bit) !== 0) return undefined;
    seen.read |= name.bit;
    return name;
  }
  // A variant of an optional member only leaves its meaning open. It may appear once, like any other member.
  if (name.kind === 'variant' && name.name !== 'stream_options') return name;
  const repeated =
    unescaped === undefined && seen.texts === undefined && seen.compared < MAX_COMPARED
      ? repeatsPlain(seen, text, start, end - start)
      : repeatsText(seen, text, unescaped ?? textOf(text, start, end));
  return repeated ? undefined : name;
}
