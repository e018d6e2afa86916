/** From an entry and its groups to the person that Postern knows. */

import type { RoleName, TenantId } from '../domain/ids.ts';
import type { Entry } from './entry.ts';
import { firstText } from './entry.ts';
import type { DirectoryPerson } from './model.ts';
import type { DirectorySettings } from './settings.ts';
import { attributesOf, type TypeTraits } from './types.ts';

const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,189}$/;
const MAX_DISPLAY_NAME = 200;
const MAX_USERNAME = 256;

export type Profile = Pick<DirectoryPerson, 'username' | 'email' | 'displayName'>;

/** @param typed stands in for the name where the entry shows none */
export function profileOf(entry: Entry, settings: DirectorySettings, traits: TypeTraits, typed: string): Profile {
  const names = attributesOf(traits, settings);
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
export function rolesOf(
  groups: readonly string[],
  settings: Pick<DirectorySettings, 'groupRoles'>,
): readonly RoleName[] {
  return [...new Set(groups.flatMap((group) => settings.groupRoles.get(group) ?? []))].toSorted((a, b) =>
    a < b ? -1 : 1,
  );
}

/** The first line of the mapping that the person is in decides. @param groups normalised */
export function tenantOf(
  groups: readonly string[],
  settings: Pick<DirectorySettings, 'groupTenants' | 'tenantId'>,
): TenantId {
  const mine = new Set(groups);
  for (const [group, tenant] of settings.groupTenants) {
    if (mine.has(group)) return tenant;
  }
  return settings.tenantId;
}
