/** The id of an entry that stays when it is renamed or moved, by whichever attribute the directory keeps it in. */

import { AndFilter, EqualityFilter, type Filter } from 'ldapts';
import { type Entry, firstText } from './entry.ts';

interface IdKind {
  readonly attribute: string;
  readonly read: (entry: Entry) => string | undefined;
  readonly value: (text: string) => string | Buffer | undefined;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** 389 Directory Server's own notation. */
const NS_UNIQUE_ID = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}$/;

function textual(attribute: string, form: RegExp): IdKind {
  const value = (text: string): string | undefined => (form.test(text) ? text : undefined);
  return { attribute, read: (entry) => value(firstText(entry, attribute)?.toLowerCase() ?? ''), value };
}

/** In the order in which one is chosen. It never changes: an id that is kept must stay the one that is found. */
const KINDS: ReadonlyMap<string, IdKind> = new Map([
  [
    'objectguid',
    {
      attribute: 'objectGUID',
      read: (entry) => entry.bytes('objectGUID').map(guidText)[0],
      value: (text) => (UUID.test(text) ? guidBytes(text) : undefined),
    } satisfies IdKind,
  ],
  ['ipauniqueid', textual('ipaUniqueID', UUID)],
  ['nsuniqueid', textual('nsUniqueId', NS_UNIQUE_ID)],
  ['entryuuid', textual('entryUUID', UUID)],
]);

export const ID_ATTRIBUTES: readonly string[] = [...KINDS.values()].map(({ attribute }) => attribute);

/** `entryuuid:7c3f…`; undefined when the entry shows none, which then cannot be told from another that takes its name. */
export function stableIdOf(entry: Entry): string | undefined {
  for (const [kind, { read }] of KINDS) {
    const text = read(entry);
    if (text !== undefined) return `${kind}:${text}`;
  }
  return undefined;
}

/** The filter that finds the entry; undefined for text that is no stable id. */
export function idFilter(stableId: string): Filter | undefined {
  const colon = stableId.indexOf(':');
  const kind = KINDS.get(stableId.slice(0, Math.max(colon, 0)));
  const value = kind?.value(stableId.slice(colon + 1));
  return kind === undefined || value === undefined ? undefined : new EqualityFilter({ attribute: kind.attribute, value });
}

export function bothFilters(one: Filter, other: Filter): Filter {
  return new AndFilter({ filters: [one, other] });
}

/** The first three groups are stored with their lowest byte first (MS-DTYP, 2.3.4.2). */
const GUID_ORDER = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];

function guidText(bytes: Buffer): string | undefined {
  if (bytes.length !== 16) return undefined;
  const hex = Buffer.from(GUID_ORDER.map((at) => bytes[at] ?? 0)).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function guidBytes(text: string): Buffer {
  const bytes = Buffer.from(text.replaceAll('-', ''), 'hex');
  return Buffer.from(GUID_ORDER.map((at) => bytes[at] ?? 0));
}
