/** Finds the one entry that a name or an id identifies. */

import { EqualityFilter, type Filter, PresenceFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import { STATE_ATTRIBUTES } from './account-state.ts';
import type { DirectoryReader } from './directory.ts';
import { normaliseDn } from './dn.ts';
import { firstText, type LdapEntry } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import { anyOf, fillFilter, hasAnyForm, parseFilter } from './filter.ts';
import { attributeOfId, bothFilters, idFilter } from './ids.ts';
import type { DirectorySettings } from './settings.ts';
import { attributeNamesOf, trustsMemberOf } from './types.ts';
import { domainsOfPattern, isDnPattern, splitDomain, type TypedName } from './user-name.ts';

export type FoundEntry =
  | { readonly kind: 'one'; readonly entry: LdapEntry }
  | { readonly kind: 'none' }
  | { readonly kind: 'several' };

/** The account that a bind by the pattern authenticated. */
export type BoundEntry =
  | Exclude<FoundEntry, { readonly kind: 'one' }>
  /**
   * `isConfirmed`: the server reports that this account is bound. Otherwise it only has the same name, and may be
   * another person's.
   */
  | { readonly kind: 'one'; readonly entry: LdapEntry; readonly isConfirmed: boolean }
  | { readonly kind: 'other_domain'; readonly detail: string };

/** Codes that report that this account may not read, for example after a bind with a password that must be changed. */
const NOT_READABLE = [1, 8, 13, 32, 50, 53];

export function isUnreadable(error: unknown): boolean {
  return error instanceof DirectoryFault && NOT_READABLE.includes(error.code);
}

/**
 * The full name of an account, `CORP\alice` (MS-ADTS). It is a constructed attribute: it can be read, and no filter
 * finds it.
 */
const PRINCIPAL_NAME = 'msDS-PrincipalName';
/** The largest number of accounts with one name in the domains of a forest. */
const MAX_NAMESAKES = 100;

/** Returns the attributes that logins and lookups read of a person's entry. */
function personAttributes({ settings, traits }: Omit<DirectoryReader, 'c'>): readonly string[] {
  const { username, email, displayName, groups } = attributeNamesOf(traits, settings);
  const names = [username, email, displayName, 'cn', traits.id, ...STATE_ATTRIBUTES];
  const trusted = trustsMemberOf(traits, settings) ? [groups] : [];
  const ofType = traits.type === 'active-directory' ? ['objectSid', 'primaryGroupID', PRINCIPAL_NAME] : [];
  return [...new Set([...names, ...trusted, ...ofType])];
}

export async function searchUser(reader: DirectoryReader, user: TypedName): Promise<FoundEntry> {
  const { settings, traits } = reader;
  return findOne(reader, fillFilter(settings.userSearchFilter ?? traits.userFilter, [user.name, user.typed]));
}

/**
 * Finds the entry of the account that is bound by the pattern. That account reads it, or the service account
 * afterwards.
 * @param bound `name`: the name in the bind; `authorization`: the server's answer to "who am I" (RFC 4532), if it gives
 *   one
 * @throws Fault if the server's answer cannot be compared with the entry
 */
export async function boundUser(
  reader: DirectoryReader,
  { name, authorization = '' }: { readonly name: string; readonly authorization: string | undefined },
): Promise<BoundEntry> {
  if (isDnPattern(reader.settings.userDnPattern ?? '')) return bound(await entryAt(reader, name), true);
  if (/^dn:./.test(authorization)) return bound(await entryAt(reader, authorization.slice('dn:'.length)), true);
  if (/^u:.*\\/s.test(authorization)) return byPrincipalName(reader, authorization.slice('u:'.length));
  const byAttribute = async (attribute: string, value: string): Promise<BoundEntry> =>
    bound(await findOne(reader, admittedBy(reader.settings, equals(attribute, value))), false);
  const account = splitDomain(name)?.name ?? name;
  if (name.includes('\\')) return byAttribute('sAMAccountName', account);
  // Active Directory itself reads such a name in this order: first as a UPN, then as an account name.
  const byUpn = await byAttribute('userPrincipalName', name);
  return byUpn.kind === 'none' ? byAttribute('sAMAccountName', account) : byUpn;
}

function bound(found: FoundEntry, isConfirmed: boolean): BoundEntry {
  return found.kind === 'one' ? { ...found, isConfirmed } : found;
}

/**
 * Finds the account with this full name, `CORP\alice`. In a forest, a domain controller also authenticates the accounts
 * of other domains, in which the same account name belongs to another person.
 */
async function byPrincipalName(reader: DirectoryReader, principal: string): Promise<BoundEntry> {
  const { c, settings } = reader;
  const { domain, name } = splitDomain(principal) ?? { domain: '', name: principal };
  const domains = domainsOfPattern(settings.userDnPattern ?? '', settings.domains);
  if (!domains.includes(domain)) {
    const detail = `the directory authenticated ${principal}, whose domain is not in ldap.domain`;
    return { kind: 'other_domain', detail };
  }
  const entries = await entriesBelow(reader, admittedBy(settings, equals('sAMAccountName', name)), MAX_NAMESAKES);
  const hidden = entries.find((entry) => firstText(entry, PRINCIPAL_NAME) === undefined);
  if (hidden !== undefined) {
    throw new Fault(
      `${c.url.text}: ${hidden.dn} shows no ${PRINCIPAL_NAME} to compare with ${principal}, which is bound`,
    );
  }
  const isBound = (entry: LdapEntry): boolean =>
    firstText(entry, PRINCIPAL_NAME)?.toLowerCase() === principal.toLowerCase();
  const [entry, other] = entries.filter(isBound);
  if (entry !== undefined) return other === undefined ? { kind: 'one', entry, isConfirmed: true } : { kind: 'several' };
  if (entries.length === 0) return { kind: 'none' };
  return { kind: 'other_domain', detail: `the directory authenticated ${principal}, and not ${entries[0]?.dn ?? ''}` };
}

/**
 * Finds the entry that has this id now, unless the configured filter excludes it.
 * @throws Fault for text that is not a stable id, and for an id under another attribute than that of the directory's
 *   type: people may be able to write such an attribute
 */
export async function userById(reader: DirectoryReader, stableId: string): Promise<FoundEntry> {
  const { settings, traits } = reader;
  const byId = idFilter(stableId);
  if (byId === undefined) throw new Fault('the stored id of a directory user is not an id');
  const attribute = attributeOfId(stableId);
  if (attribute !== traits.id) {
    throw new Fault(
      `a user of ${settings.name} is stored under ${attribute}, and people of the type ${traits.type} are identified by ${traits.id}: correct ldap.type, or delete the user`,
    );
  }
  return findOne(reader, admittedBy(settings, byId));
}

/**
 * Reports whether another person has this name. The owner of an entry that was found by its id, its DN or another
 * attribute may have given it a colleague's name, and groups would list the colleague by it.
 */
export async function hasNamesake(
  { c, settings, traits }: DirectoryReader,
  { dn, name }: { readonly dn: string; readonly name: string },
): Promise<boolean> {
  const filter = admittedBy(
    { userSearchFilter: settings.userSearchFilter ?? traits.userFilter },
    equals(attributeNamesOf(traits, settings).username, name),
  );
  const base = settings.userSearchBase ?? settings.baseDn;
  const entries = await c.search({ base, scope: 'sub', filter, attributes: ['1.1'] }, 2);
  const comparable = (text: string): string => normaliseDn(text) ?? text;
  return entries.some((entry) => comparable(entry.dn) !== comparable(dn));
}

/** Restricts a filter to the entries that the configured user filter can find. */
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

async function entryAt(reader: DirectoryReader, dn: string): Promise<FoundEntry> {
  const filter = admittedBy(reader.settings, new PresenceFilter({ attribute: 'objectClass' }));
  const search = { base: dn, scope: 'base', filter, attributes: personAttributes(reader) } as const;
  const [entry] = await reader.c.search(search, 1);
  return entry === undefined ? { kind: 'none' } : { kind: 'one', entry };
}

async function findOne(reader: DirectoryReader, filter: Filter | string): Promise<FoundEntry> {
  // Two entries distinguish one from several.
  const [entry, other] = await entriesBelow(reader, filter, 2);
  if (entry === undefined) return { kind: 'none' };
  return other === undefined ? { kind: 'one', entry } : { kind: 'several' };
}

async function entriesBelow(
  reader: DirectoryReader,
  filter: Filter | string,
  limit: number,
): Promise<readonly LdapEntry[]> {
  const { c, settings } = reader;
  const base = settings.userSearchBase ?? settings.baseDn;
  return c.search({ base, scope: 'sub', filter, attributes: personAttributes(reader) }, limit);
}
