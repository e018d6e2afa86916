/**
 * The id of an entry, which does not change if the entry is renamed or moved. Each type of directory has exactly one
 * attribute for it: an attribute that is operational in one product may be an ordinary one in another, which people can
 * write into their own entries.
 */

import { AndFilter, EqualityFilter, type Filter } from 'ldapts';
import type { LdapEntry } from './entry.ts';

export type IdAttribute = 'objectGUID' | 'ipaUniqueID' | 'nsUniqueId' | 'entryUUID';

type ReadId =
  | { readonly kind: 'one'; readonly stableId: string }
  | { readonly kind: 'several' }
  /** The reader sees no value, or a value that is not an id. */
  | { readonly kind: 'none' };

interface IdForm {
  readonly read: (entry: LdapEntry, attribute: IdAttribute) => string | undefined;
  /** Returns the value to search for; undefined for text that is not an id. */
  readonly value: (text: string) => string | Buffer | undefined;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
/** 389 Directory Server's own notation. */
const NS_UNIQUE_ID = /^[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}-[0-9a-f]{8}$/;

function textual(form: RegExp): IdForm {
  const value = (text: string): string | undefined => (form.test(text) ? text : undefined);
  return { read: (entry, attribute) => value(entry.texts(attribute)[0]?.trim().toLowerCase() ?? ''), value };
}

const FORMS: Readonly<Record<IdAttribute, IdForm>> = {
  objectGUID: {
    read: (entry, attribute) => entry.bytes(attribute).map(guidText)[0],
    value: (text) => (UUID.test(text) ? guidBytes(text) : undefined),
  },
  ipaUniqueID: textual(UUID),
  nsUniqueId: textual(NS_UNIQUE_ID),
  entryUUID: textual(UUID),
};

/**
 * Reads the id from the attribute of the directory's type, such as `entryuuid:7c3f…`. No other attribute of the entry
 * counts.
 */
export function readId(entry: LdapEntry, attribute: IdAttribute): ReadId {
  if (entry.count(attribute) > 1) return { kind: 'several' };
  const text = FORMS[attribute].read(entry, attribute);
  return text === undefined ? { kind: 'none' } : { kind: 'one', stableId: `${attribute.toLowerCase()}:${text}` };
}

/**
 * Returns the attribute under which an id was stored; undefined for text that is not a stable id of any type of
 * directory.
 */
export function attributeOfId(stableId: string): IdAttribute | undefined {
  const [attribute] = parse(stableId) ?? [];
  return attribute;
}

/** Returns the filter that finds the entry; undefined for text that is not a stable id. */
export function idFilter(stableId: string): Filter | undefined {
  const [attribute, value] = parse(stableId) ?? [];
  return attribute === undefined || value === undefined ? undefined : new EqualityFilter({ attribute, value });
}

function parse(stableId: string): readonly [IdAttribute, string | Buffer] | undefined {
  const colon = stableId.indexOf(':');
  const attribute = ATTRIBUTES.find((one) => one.toLowerCase() === stableId.slice(0, Math.max(colon, 0)));
  const value = attribute && FORMS[attribute].value(stableId.slice(colon + 1));
  return attribute === undefined || value === undefined ? undefined : [attribute, value];
}

const ATTRIBUTES: readonly IdAttribute[] = ['objectGUID', 'ipaUniqueID', 'nsUniqueId', 'entryUUID'];

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
