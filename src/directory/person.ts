/** Turns an entry and its groups into the person that Postern knows. */

import type { RoleName, TenantId } from '../domain/ids.ts';
import { compareTexts } from '../domain/text.ts';
import { firstText, type LdapEntry } from './entry.ts';
import { readId } from './ids.ts';
import type { DirectoryPerson } from './model.ts';
import type { DirectorySettings } from './settings.ts';
import { attributeNamesOf, type TypeTraits } from './types.ts';

/** A directory's settings, with the traits of its type. */
export interface DirectoryProfile {
  readonly settings: DirectorySettings;
  readonly traits: TypeTraits;
}

export type EntryIdentity =
  | {
      readonly kind: 'one';
      readonly stableId: string;
      /** The value that names the person in groups (`memberUid`); undefined = the reader cannot see one. */
      readonly account: string | undefined;
    }
  | { readonly kind: 'refused'; readonly reason: 'several_names' | 'several_ids'; readonly detail: string }
  | { readonly kind: 'hidden'; readonly detail: string };

/**
 * Reads the identity of an entry: one value of the identity attribute, and at most one value of the attribute that
 * names people. An entry with several values of either identifies no person: if people can write their own entries, a
 * second value may belong to another person.
 */
export function identify(entry: LdapEntry, { settings, traits }: DirectoryProfile): EntryIdentity {
  const { username } = attributeNamesOf(traits, settings);
  const id = readId(entry, traits.id);
  const several = (attribute: string): string => `${entry.dn} has ${entry.count(attribute)} values of ${attribute}`;
  if (id.kind === 'several') return { kind: 'refused', reason: 'several_ids', detail: several(traits.id) };
  if (entry.count(username) > 1) return { kind: 'refused', reason: 'several_names', detail: several(username) };
  if (id.kind === 'none') {
    const detail = `${entry.dn} shows no ${traits.id}, which identifies people of the type ${traits.type}`;
    return { kind: 'hidden', detail };
  }
  return { kind: 'one', stableId: id.stableId, account: firstText(entry, username) };
}

const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,189}$/;
const MAX_DISPLAY_NAME = 200;
const MAX_USERNAME = 256;

type PersonProfile = Pick<DirectoryPerson, 'username' | 'email' | 'displayName'>;

/** @param typed the username if the entry shows none */
export function profileOf(entry: LdapEntry, { settings, traits }: DirectoryProfile, typed: string): PersonProfile {
  const names = attributeNamesOf(traits, settings);
  const email = entry
    .texts(names.email)
    .map((text) => text.trim().toLowerCase())
    .find((text) => EMAIL.test(text));
  const displayName = firstText(entry, names.displayName) ?? firstText(entry, 'cn');
  return {
    username: (firstText(entry, names.username) ?? typed).slice(0, MAX_USERNAME),
    email,
    displayName: displayName === undefined ? undefined : [...displayName].slice(0, MAX_DISPLAY_NAME).join(''),
  };
}

/** @param groups normalised */
export function mapGroupsToRoles(
  groups: readonly string[],
  { groupRoles }: Pick<DirectorySettings, 'groupRoles'>,
): readonly RoleName[] {
  const roles = new Set(groups.flatMap((group) => groupRoles.get(group) ?? []));
  return [...roles].toSorted(compareTexts);
}

/** The first entry of the mapping whose group has the person decides. @param groups normalised */
export function mapGroupsToTenant(
  groups: readonly string[],
  { groupTenants, tenantId }: Pick<DirectorySettings, 'groupTenants' | 'tenantId'>,
): TenantId {
  const own = new Set(groups);
  for (const [group, tenant] of groupTenants) if (own.has(group)) return tenant;
  return tenantId;
}
