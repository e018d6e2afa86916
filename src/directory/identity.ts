/** Whom an entry identifies: by one value of the identity attribute, and by at most one value of the attribute that names people. */

import { type Entry, firstText } from './entry.ts';
import { readId } from './ids.ts';
import type { DirectorySettings } from './settings.ts';
import { attributesOf, type TypeTraits } from './types.ts';

export type EntryIdentity =
  | {
      readonly kind: 'one';
      readonly stableId: string;
      /** The value that names the person in groups (`memberUid`); undefined = the reader sees none. */
      readonly account: string | undefined;
    }
  | { readonly kind: 'refused'; readonly reason: 'several_names' | 'several_ids'; readonly detail: string }
  | { readonly kind: 'hidden'; readonly detail: string };

/**
 * Reads the identity of an entry. An entry with several values of either attribute identifies nobody: where people can write their own
 * entry, a second value is another person's.
 */
export function identify(entry: Entry, settings: DirectorySettings, traits: TypeTraits): EntryIdentity {
  const { username } = attributesOf(traits, settings);
  const id = readId(entry, traits.id);
  const several = (attribute: string): string => `${entry.dn} has ${entry.count(attribute)} values of ${attribute}`;
  if (id.kind === 'several') return { kind: 'refused', reason: 'several_ids', detail: several(traits.id) };
  if (entry.count(username) > 1) return { kind: 'refused', reason: 'several_names', detail: several(username) };
  if (id.kind === 'none') {
    return {
      kind: 'hidden',
      detail: `${entry.dn} shows no ${traits.id}, which identifies people of the type ${traits.type}`,
    };
  }
  return { kind: 'one', stableId: id.stableId, account: firstText(entry, username) };
}
