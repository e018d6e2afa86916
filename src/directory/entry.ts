/** Reads an entry as a server gave it. Attribute names are compared without case, as directories do. */

import type { Entry as RawEntry } from 'ldapts';

export interface Entry {
  readonly dn: string;
  /** Values that are text; those that are not UTF-8 are left out. */
  readonly texts: (attribute: string) => readonly string[];
  readonly bytes: (attribute: string) => readonly Buffer[];
  /** The number of values, text or not, those under a language tag or another option (`uid;lang-en`) included. */
  readonly count: (attribute: string) => number;
  /** The ranged form `attribute;range=0-1499` that Active Directory gives when there are more values than it sends at a time. */
  readonly range: (attribute: string) => Range | undefined;
}

export interface Range {
  readonly values: readonly string[];
  /** Where the rest starts; undefined = this was the last. */
  readonly next: number | undefined;
}

type Value = string | Buffer;

export function readEntry(raw: RawEntry): Entry {
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

/** The first value that says something, without spaces around it. */
export function firstText(entry: Entry, attribute: string): string | undefined {
  return entry
    .texts(attribute)
    .map((text) => text.trim())
    .find((text) => text !== '');
}

export function isTrue(entry: Entry, attribute: string): boolean {
  return entry.texts(attribute).some((text) => text.toLowerCase() === 'true');
}

/** A whole number, which may be negative; undefined when there is none. */
export function numberOf(entry: Entry, attribute: string): bigint | undefined {
  const text = firstText(entry, attribute);
  return text !== undefined && /^-?\d{1,20}$/.test(text) ? BigInt(text) : undefined;
}
