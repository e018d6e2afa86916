/** Entries as a server would give them, for rules that no server here can be made to show. */

import { type LdapEntry, readEntry } from '../../../src/directory/entry.ts';

export function entryOf(
  attributes: Readonly<Record<string, string | readonly string[] | Buffer>>,
  dn = 'uid=alice,dc=x',
): LdapEntry {
  const raw = Object.entries(attributes).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]);
  return readEntry({ ...Object.fromEntries(raw), dn });
}
