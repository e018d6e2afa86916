/** From a name to the one entry that it names. */

import { EqualityFilter, type Filter, PresenceFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import { STATE_ATTRIBUTES } from './account-state.ts';
import type { Connection } from './connection.ts';
import type { Entry } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import { anyOf, fillFilter, hasAnyForm, parseFilter } from './filter.ts';
import { bothFilters, ID_ATTRIBUTES, idFilter } from './ids.ts';
import type { DirectorySettings } from './settings.ts';
import { attributesOf, type TypeTraits } from './types.ts';
import { isDnPattern, splitDomain, type TypedName } from './user-name.ts';

export type Found = { readonly kind: 'one'; readonly entry: Entry } | { readonly kind: 'none' } | { readonly kind: 'several' };

/** Codes by which a server says that this account may not read, as after a bind with a password that must be changed. */
const NOT_READABLE = [1, 8, 13, 32, 50, 53];

export function isUnreadable(error: unknown): boolean {
  return error instanceof DirectoryFault && NOT_READABLE.includes(error.code);
}

/** What is read of a person's entry, at a login and at a look-up alike. */
export function personAttributes(settings: DirectorySettings, traits: TypeTraits): readonly string[] {
  const { username, email, displayName, groups } = attributesOf(traits, settings);
  const names = [username, email, displayName, groups, 'cn', ...ID_ATTRIBUTES, ...STATE_ATTRIBUTES];
  const ofType = traits.type === 'active-directory' ? ['objectSid', 'primaryGroupID'] : [];
  return [...new Set([...names, ...ofType])];
}

export async function searchUser(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  user: TypedName,
): Promise<Found> {
  const filter = fillFilter(settings.userSearchFilter ?? traits.userFilter, [user.name, user.typed]);
  return one(c, settings, traits, filter);
}

/** The entry of whoever is bound by the pattern. Read by that person, or by the service account afterwards. */
export async function boundUser(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  bound: { readonly name: string; readonly authorization: string | undefined },
): Promise<Found> {
  const { name, authorization } = bound;
  if (isDnPattern(settings.userDnPattern ?? '')) return entryAt(c, settings, traits, name);
  if (authorization?.startsWith('dn:') && authorization !== 'dn:')
    return entryAt(c, settings, traits, authorization.slice('dn:'.length));
  // `u:CORP\alice`: the server itself says under which account name it knows the person.
  const account = authorization?.startsWith('u:') ? splitDomain(authorization.slice('u:'.length))?.name : undefined;
  if (account !== undefined) return one(c, settings, traits, admittedBy(settings, equals('sAMAccountName', account)));
  const own = splitDomain(name)?.name ?? name;
  if (name.includes('\\')) return one(c, settings, traits, admittedBy(settings, equals('sAMAccountName', own)));
  // In the order in which Active Directory itself reads such a name: as somebody's UPN before anybody's account name.
  const byUpn = await one(c, settings, traits, admittedBy(settings, equals('userPrincipalName', name)));
  return byUpn.kind === 'none' ? one(c, settings, traits, admittedBy(settings, equals('sAMAccountName', own))) : byUpn;
}

/**
 * The entry that has this id now. One that the configured filter would no longer find is not found here either.
 * @throws Fault for text that is no stable id
 */
export async function userById(c: Connection, settings: DirectorySettings, traits: TypeTraits, stableId: string): Promise<Found> {
  const byId = idFilter(stableId);
  if (byId === undefined) throw new Fault('what is kept as the id of a directory user is none');
  return one(c, settings, traits, admittedBy(settings, byId));
}

/** Who is found otherwise than by the configured filter must be one whom it could find. */
export function admittedBy({ userSearchFilter: template }: DirectorySettings, filter: Filter): Filter {
  const admitted = template !== undefined && hasAnyForm(template) ? parseFilter(anyOf(template)) : undefined;
  return admitted === undefined ? filter : bothFilters(filter, admitted);
}

function equals(attribute: string, value: string): Filter {
  return new EqualityFilter({ attribute, value });
}

async function entryAt(c: Connection, settings: DirectorySettings, traits: TypeTraits, dn: string): Promise<Found> {
  const attributes = personAttributes(settings, traits);
  const filter = admittedBy(settings, new PresenceFilter({ attribute: 'objectClass' }));
  const [entry] = await c.search({ base: dn, scope: 'base', filter, attributes }, 1);
  return entry === undefined ? { kind: 'none' } : { kind: 'one', entry };
}

async function one(c: Connection, settings: DirectorySettings, traits: TypeTraits, filter: Filter | string): Promise<Found> {
  const base = settings.userSearchBase ?? settings.baseDn;
  const attributes = personAttributes(settings, traits);
  // One more than wanted tells one from several.
  const [entry, other] = await c.search({ base, scope: 'sub', filter, attributes }, 2);
  if (entry === undefined) return { kind: 'none' };
  return other === undefined ? { kind: 'one', entry } : { kind: 'several' };
}
