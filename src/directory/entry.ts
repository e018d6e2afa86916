/** Reads the entry that a server sent. Attribute names are compared without case, as directories compare them. */

import type { Entry as RawEntry } from 'ldapts';

export interface LdapEntry {
  readonly dn: string;
  /** The values that are text, without those that are not UTF-8. */
  readonly texts: (attribute: string) => readonly string[];
  readonly bytes: (attribute: string) => readonly Buffer[];
  /** The number of values of any kind, including those under a language tag or another option (`uid;lang-en`). */
  readonly count: (attribute: string) => number;
  /** The ranged form `attribute;range=0-1499`, which Active Directory uses for more values than it sends at a time. */
  readonly range: (attribute: string) => ValueRange | undefined;
}

interface ValueRange {
  readonly values: readonly string[];
  /** The beginning of the next range; undefined = this is the last. */
  readonly next: number | undefined;
}

type Value = string | Buffer;

export function readEntry(raw: RawEntry): LdapEntry {
  const attributes = new Map<string, readonly Value[]>();
  for (const [name, value] of Object.entries(raw)) {
    const values: readonly Value[] = Array.isArray(value) ? value : [value];
    if (name !== 'dn' && values.length > 0) attributes.set(name.toLowerCase(), values);
  }
  const valuesOf = (attribute: string): readonly Value[] => attributes.get(attribute.toLowerCase()) ?? [];
  return {
    dn: raw.dn,
    texts: (attribute) => texts(valuesOf(attribute)),
    bytes: (attribute) => valuesOf(attribute).map((value) => (typeof value === 'string' ? Buffer.from(value) : value)),
    count: (attribute) => {
      const name = attribute.toLowerCase();
      const same = [...attributes].filter(([one]) => one === name || one.startsWith(`${name};`));
      return same.reduce((sum, [, values]) => sum + values.length, 0);
    },
    range: (attribute) => {
      const start = `${attribute.toLowerCase()};range=`;
      for (const [name, values] of attributes) {
        const bounds = name.startsWith(start) ? /^\d+-(\d+|\*)$/.exec(name.slice(start.length)) : null;
        if (bounds !== null)
          return { values: texts(values), next: bounds[1] === '*' ? undefined : Number(bounds[1]) + 1 };
      }
      return undefined;
    },
  };
}

function texts(values: readonly Value[]): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

/** Returns the first value that is not blank, trimmed. */
export function firstText(entry: LdapEntry, attribute: string): string | undefined {
  return entry
    .texts(attribute)
    .map((text) => text.trim())
    .find((text) => text !== '');
}

export function isTrue(entry: LdapEntry, attribute: string): boolean {
  return entry.texts(attribute).some((text) => text.toLowerCase() === 'true');
}

/** Returns a whole number, which may be negative; undefined if there is none. */
export function integerOf(entry: LdapEntry, attribute: string): bigint | undefined {
  const text = firstText(entry, attribute);
  return text !== undefined && /^-?\d{1,20}$/.test(text) ? BigInt(text) : undefined;
}
