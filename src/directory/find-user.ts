/** From a name to the one entry that it names. */

import { EqualityFilter, type Filter, PresenceFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import { STATE_ATTRIBUTES } from './account-state.ts';
import type { Connection } from './connection.ts';
import { normaliseDn } from './dn.ts';
import { type Entry, firstText } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import { anyOf, fillFilter, hasAnyForm, parseFilter } from './filter.ts';
import { attributeOfId, bothFilters, idFilter } from './ids.ts';
import type { DirectorySettings } from './settings.ts';
import { attributesOf, type TypeTraits, trustsMemberOf } from './types.ts';
import { domainsOfPattern, isDnPattern, splitDomain, type TypedName } from './user-name.ts';

export type Found =
  | { readonly kind: 'one'; readonly entry: Entry }
  | { readonly kind: 'none' }
  | { readonly kind: 'several' };

/** Whom a bind by the pattern authenticated. */
export type BoundFound =
  | Exclude<Found, { readonly kind: 'one' }>
  /** `isSaid`: the server itself says that this account is bound; otherwise it was found by the same name, which may be another's. */
  | { readonly kind: 'one'; readonly entry: Entry; readonly isSaid: boolean }
  | { readonly kind: 'other_domain'; readonly detail: string };

/** Codes by which a server says that this account may not read, as after a bind with a password that must be changed. */
const NOT_READABLE = [1, 8, 13, 32, 50, 53];

export function isUnreadable(error: unknown): boolean {
  return error instanceof DirectoryFault && NOT_READABLE.includes(error.code);
}

/** The whole name of an account, `CORP\alice` (MS-ADTS). Constructed: it can be read, and no filter finds it. */
const PRINCIPAL_NAME = 'msDS-PrincipalName';
/** Accounts with one name in the domains of a forest. */
const MAX_NAMESAKES = 100;

/** What is read of a person's entry, at a login and at a look-up alike. */
export function personAttributes(settings: DirectorySettings, traits: TypeTraits): readonly string[] {
  const { username, email, displayName, groups } = attributesOf(traits, settings);
  const names = [username, email, displayName, 'cn', traits.id, ...STATE_ATTRIBUTES];
  const trusted = trustsMemberOf(traits, settings) ? [groups] : [];
  const ofType = traits.type === 'active-directory' ? ['objectSid', 'primaryGroupID', PRINCIPAL_NAME] : [];
  return [...new Set([...names, ...trusted, ...ofType])];
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

/**
 * The entry of the account that is bound by the pattern. Read by that account, or by the service account afterwards.
 * @param bound `name`: what was bound as; `authorization`: the server's answer to "who am I" (RFC 4532), where it gives one
 * @throws Fault when the server's answer cannot be compared with the entry
 */
export async function boundUser(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  bound: { readonly name: string; readonly authorization: string | undefined },
): Promise<BoundFound> {
  const { name, authorization = '' } = bound;
  if (isDnPattern(settings.userDnPattern ?? '')) return said(await entryAt(c, settings, traits, name));
  if (/^dn:./.test(authorization)) return said(await entryAt(c, settings, traits, authorization.slice('dn:'.length)));
  if (/^u:.*\\/s.test(authorization)) return byPrincipalName(c, settings, traits, authorization.slice('u:'.length));
  const byAccount = async (account: string): Promise<BoundFound> =>
    unsaid(await one(c, settings, traits, admittedBy(settings, equals('sAMAccountName', account))));
  const own = splitDomain(name)?.name ?? name;
  if (name.includes('\\')) return byAccount(own);
  // In the order in which Active Directory itself reads such a name: as somebody's UPN before anybody's account name.
  const byUpn = unsaid(await one(c, settings, traits, admittedBy(settings, equals('userPrincipalName', name))));
  return byUpn.kind === 'none' ? byAccount(own) : byUpn;
}

const said = (found: Found): BoundFound => (found.kind === 'one' ? { ...found, isSaid: true } : found);
const unsaid = (found: Found): BoundFound => (found.kind === 'one' ? { ...found, isSaid: false } : found);

/**
 * The account with this whole name, `CORP\alice`. In a forest a domain controller also authenticates the accounts of other domains, where the
 * same account name is another person's.
 */
async function byPrincipalName(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  principal: string,
): Promise<BoundFound> {
  const { domain, name } = splitDomain(principal) ?? { domain: '', name: principal };
  const domains = domainsOfPattern(settings.userDnPattern ?? '', settings.domains);
  if (!domains.includes(domain)) {
    return {
      kind: 'other_domain',
      detail: `the directory authenticated ${principal}, whose domain is not in ldap.domain`,
    };
  }
  const filter = admittedBy(settings, equals('sAMAccountName', name));
  const entries = await entriesBelow(c, settings, traits, { filter, limit: MAX_NAMESAKES });
  const hidden = entries.find((entry) => firstText(entry, PRINCIPAL_NAME) === undefined);
  if (hidden !== undefined) {
    throw new Fault(
      `${c.url.text}: ${hidden.dn} shows no ${PRINCIPAL_NAME} to compare with ${principal}, which is bound`,
    );
  }
  const isBound = (entry: Entry): boolean =>
    firstText(entry, PRINCIPAL_NAME)?.toLowerCase() === principal.toLowerCase();
  const [entry, other] = entries.filter(isBound);
  if (entry !== undefined) return other === undefined ? { kind: 'one', entry, isSaid: true } : { kind: 'several' };
  if (entries.length === 0) return { kind: 'none' };
  return { kind: 'other_domain', detail: `the directory authenticated ${principal}, and not ${entries[0]?.dn ?? ''}` };
}

/**
 * The entry that has this id now. One that the configured filter would no longer find is not found here either.
 * @throws Fault for text that is no stable id, and for an id under another attribute than that of the directory's type: people may be able
 *   to write such an attribute
 */
export async function userById(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  stableId: string,
): Promise<Found> {
  const byId = idFilter(stableId);
  if (byId === undefined) throw new Fault('what is kept as the id of a directory user is none');
  const attribute = attributeOfId(stableId);
  if (attribute !== traits.id) {
    throw new Fault(
      `a user of ${settings.name} is stored under ${attribute}, and people of the type ${traits.type} are identified by ${traits.id}: correct ldap.type, or delete the user`,
    );
  }
  return one(c, settings, traits, admittedBy(settings, byId));
}

/**
 * Reports whether another person has this name. An entry that was found by its id, by its DN or by another attribute may have been given a
 * colleague's name by its own owner, and groups would list the colleague by it.
 */
export async function hasNamesake(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  { dn, name }: { readonly dn: string; readonly name: string },
): Promise<boolean> {
  const filter = admittedBy(
    { userSearchFilter: settings.userSearchFilter ?? traits.userFilter },
    equals(attributesOf(traits, settings).username, name),
  );
  const base = settings.userSearchBase ?? settings.baseDn;
  const entries = await c.search({ base, scope: 'sub', filter, attributes: ['1.1'] }, 2);
  const comparable = (text: string): string => normaliseDn(text) ?? text;
  return entries.some((entry) => comparable(entry.dn) !== comparable(dn));
}

/** Who is found otherwise than by the configured filter must be one whom it could find. */
export function admittedBy(
  { userSearchFilter: template }: Pick<DirectorySettings, 'userSearchFilter'>,
  filter: Filter,
): Filter {
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

async function one(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  filter: Filter | string,
): Promise<Found> {
  // One more than wanted tells one from several.
  const [entry, other] = await entriesBelow(c, settings, traits, { filter, limit: 2 });
  if (entry === undefined) return { kind: 'none' };
  return other === undefined ? { kind: 'one', entry } : { kind: 'several' };
}

async function entriesBelow(
  c: Connection,
  settings: DirectorySettings,
  traits: TypeTraits,
  { filter, limit }: { readonly filter: Filter | string; readonly limit: number },
): Promise<readonly Entry[]> {
  const base = settings.userSearchBase ?? settings.baseDn;
  return c.search({ base, scope: 'sub', filter, attributes: personAttributes(settings, traits) }, limit);
}
