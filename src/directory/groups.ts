/**
 * The groups of a person, direct and nested: those that the entry names if it is trusted, those that the search for
 * groups finds, Active Directory's primary group, and the groups that contain them.
 */

import { randomUUID } from 'node:crypto';
import { AndFilter, EqualityFilter, ExtensibleFilter, OrFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import { compareTexts } from '../domain/text.ts';
import type { LdapConnection } from './connection.ts';
import type { DirectoryReader } from './directory.ts';
import { normaliseDn } from './dn.ts';
import { integerOf, type LdapEntry } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import { fillFilter } from './filter.ts';
import type { DirectoryProfile } from './person.ts';
import { attributeNamesOf, trustsMemberOf } from './types.ts';

/** LDAP_MATCHING_RULE_IN_CHAIN (MS-ADTS, 3.1.1.3.4.4.3): follows groups in groups on the server. */
const IN_CHAIN = '1.2.840.113556.1.4.1941';
const MAX_ENTRIES = 10_000;
/** More groups than this indicate a wrong filter, or a directory that is too large to walk at each login. */
const MAX_GROUPS = 10_000;
const MAX_DEPTH = 32;
/** groupOfNames, groupOfUniqueNames and posixGroup. */
const USUAL_FILTER = '(|(member={0})(uniqueMember={0})(memberUid={1}))';
/** Finds the groups that contain a group, if the configured filter finds people by name only. */
const NESTED_FILTER = '(|(member={0})(uniqueMember={0}))';
const CHUNK = 50;
/** The codes sizeLimitExceeded and adminLimitExceeded: the answer is larger than the server's limit. */
const OVER_A_LIMIT = [4, 11];
/** The number of groups that are read at the same time over the one connection. */
const PARALLEL = 16;

interface Walk extends DirectoryReader {
  /** The person's name in the directory, for `{1}`; undefined = the entry shows none, and no group can list it. */
  readonly account: string | undefined;
}

/** The groups found so far, each once by its normalised DN. */
class GroupSet {
  /** From the normalised DN to the server's spelling, which later searches use. */
  readonly #dns = new Map<string, string>();

  /**
   * Returns the new ones, in the server's spelling. Ignores text that is not a DN.
   * @throws Fault if there are too many
   */
  add(dns: Iterable<string>): readonly string[] {
    const added: string[] = [];
    for (const dn of dns) {
      const normal = normaliseDn(dn);
      if (normal === undefined || normal === '' || this.#dns.has(normal)) continue;
      if (this.#dns.size >= MAX_GROUPS) throw new Fault(`a person is in more than ${MAX_GROUPS} groups`);
      this.#dns.set(normal, dn);
      added.push(dn);
    }
    return added;
  }

  /** Normalised and sorted. */
  list(): readonly string[] {
    return [...this.#dns.keys()].toSorted(compareTexts);
  }
}

/** Returns normalised DNs, sorted. @throws Fault if not all groups can be read */
export async function groupsOf(walk: Walk, person: LdapEntry): Promise<readonly string[]> {
  const { settings, traits } = walk;
  const found = new GroupSet();
  const isTrusted = trustsMemberOf(traits, settings);
  const named = isTrusted ? found.add(await allValues(walk.c, person, attributeNamesOf(traits, settings).groups)) : [];
  const isWalked = settings.nestedGroups && traits.type !== 'active-directory';
  const template = groupFilter(walk);
  if (isWalked && template?.includes('{0}') === true) {
    // The first search has the person and the groups that are known already. It nearly always finds all others.
    await walkUp(found, [person.dn, ...named], {
      maxLevels: MAX_DEPTH + 1,
      above: (level) => searchGroups(walk, template, level),
    });
    return found.list();
  }
  const searched = template === undefined ? [] : found.add(await searchGroups(walk, template, [person.dn]));
  if (traits.type === 'active-directory') {
    const primary = await primaryGroup(walk, person);
    found.add(primary);
    if (settings.nestedGroups) found.add(await inChain(walk, [person.dn, ...primary]));
  } else if (isWalked && !isTrusted) {
    const above = (level: readonly string[]) => searchGroups(walk, NESTED_FILTER, level);
    await walkUp(found, searched, { maxLevels: MAX_DEPTH, above });
  } else if (isWalked && traits.nesting === 'walk') {
    await walkUp(found, [...named, ...searched], {
      maxLevels: MAX_DEPTH,
      above: (level) => groupsOfGroups(walk, level),
    });
  }
  return found.list();
}

/**
 * Returns the filter of the search for groups; undefined if there is none. Active Directory needs none, because its
 * entries and its matching rule give all groups. If the entry is not trusted, there always is one.
 */
function groupFilter({ settings, traits }: DirectoryProfile): string | undefined {
  const isSearched = settings.groupSearchBase !== undefined && traits.type !== 'active-directory';
  return settings.groupSearchFilter ?? (isSearched || !trustsMemberOf(traits, settings) ? USUAL_FILTER : undefined);
}

/** Reports whether the search finds groups that list people by name. */
export function isSearchedByName(profile: DirectoryProfile): boolean {
  return groupFilter(profile)?.includes('{1}') === true;
}

/** Reports whether the groups are in other entries than the person's own. */
export function needsReading(profile: DirectoryProfile, person: LdapEntry): boolean {
  const { settings, traits } = profile;
  const { groups } = attributeNamesOf(traits, settings);
  if (traits.type === 'active-directory' || groupFilter(profile) !== undefined) return true;
  if (person.range(groups) !== undefined) return true;
  return settings.nestedGroups && traits.nesting === 'walk' && person.texts(groups).length > 0;
}

interface Steps {
  readonly maxLevels: number;
  /** Returns the groups that contain those of one level. */
  readonly above: (level: readonly string[]) => Promise<readonly string[]>;
}

/** Walks level by level and visits each group once, so that a cycle of groups ends. */
async function walkUp(found: GroupSet, start: readonly string[], { maxLevels, above }: Steps): Promise<void> {
  let level = start;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= maxLevels) throw new Fault(`groups are nested more than ${MAX_DEPTH} deep`);
    level = found.add(await above(level));
  }
}

/** Searches for the groups that list a person or a group. */
async function searchGroups(walk: Walk, template: string, members: readonly string[]): Promise<readonly string[]> {
  const dns: string[] = [];
  for (let at = 0; at < members.length; at += CHUNK) {
    dns.push(...(await searchTogether(walk, template, members.slice(at, at + CHUNK))));
  }
  return dns;
}

/** Uses one search, unless its answer exceeds the server's limit: then one for each half. */
async function searchTogether(walk: Walk, template: string, members: readonly string[]): Promise<readonly string[]> {
  // A random name keeps the filter complete, and its part by name finds nothing.
  const { c, settings, account = randomUUID() } = walk;
  const filters = members.map((dn) => fillFilter(template, [dn, account]));
  const filter = filters.length === 1 ? (filters[0] ?? '') : `(|${filters.join('')})`;
  const base = settings.groupSearchBase ?? settings.baseDn;
  try {
    const entries = await c.searchAll({ base, scope: 'sub', filter, attributes: ['1.1'] }, MAX_ENTRIES);
    return entries.map(({ dn }) => dn);
  } catch (error) {
    if (members.length === 1 || !(error instanceof DirectoryFault) || !OVER_A_LIMIT.includes(error.code)) throw error;
  }
  const half = Math.ceil(members.length / 2);
  const first = await searchTogether(walk, template, members.slice(0, half));
  return [...first, ...(await searchTogether(walk, template, members.slice(half)))];
}

/** Reads the groups from the groups' own entries, if no search is configured. */
async function groupsOfGroups({ c, settings, traits }: Walk, groups: readonly string[]): Promise<readonly string[]> {
  const attribute = attributeNamesOf(traits, settings).groups;
  const dns: string[] = [];
  for (let at = 0; at < groups.length; at += PARALLEL) {
    const read = groups.slice(at, at + PARALLEL).map(async (base) => {
      const [entry] = await c.search({ base, scope: 'base', filter: '(objectClass=*)', attributes: [attribute] }, 1);
      return entry === undefined ? [] : allValues(c, entry, attribute);
    });
    dns.push(...(await Promise.all(read)).flat());
  }
  return dns;
}

/** Finds all groups that contain the members, by the server's own rule. */
async function inChain({ c, settings }: Walk, members: readonly string[]): Promise<readonly string[]> {
  const filters = members.map((value) => new ExtensibleFilter({ matchType: 'member', rule: IN_CHAIN, value }));
  const base = settings.groupSearchBase ?? settings.baseDn;
  // Without this condition, the server applies the rule to every entry of the domain.
  const isGroup = new EqualityFilter({ attribute: 'objectCategory', value: 'group' });
  const filter = new AndFilter({ filters: [isGroup, new OrFilter({ filters })] });
  const entries = await c.searchAll({ base, scope: 'sub', filter, attributes: ['1.1'] }, MAX_ENTRIES);
  return entries.map(({ dn }) => dn);
}

/**
 * In Active Directory, the primary group does not list its members, and `memberOf` does not include it. The entry has
 * its number.
 */
async function primaryGroup({ c, settings }: Walk, person: LdapEntry): Promise<readonly string[]> {
  const [sid, relativeId] = [person.bytes('objectSid')[0], integerOf(person, 'primaryGroupID')];
  const value = sid && relativeId !== undefined ? siblingSid(sid, Number(relativeId)) : undefined;
  if (value === undefined) return [];
  const filter = new EqualityFilter({ attribute: 'objectSid', value });
  const entries = await c.search({ base: settings.baseDn, scope: 'sub', filter, attributes: ['1.1'] }, 2);
  return entries.map(({ dn }) => dn);
}

/**
 * Returns the SID of another object of the same domain: the last sub-authority replaced (MS-DTYP, 2.4.2.2). Returns
 * undefined for bytes that are not the SID of a domain's object.
 */
export function siblingSid(sid: Buffer, relativeId: number): Buffer | undefined {
  const count = sid[1] ?? 0;
  const isDomainSid = sid[0] === 1 && count >= 2 && count <= 15 && sid.length === 8 + 4 * count;
  if (!isDomainSid || !Number.isInteger(relativeId) || relativeId < 0 || relativeId > 0xffff_ffff) return undefined;
  const sibling = Buffer.from(sid);
  sibling.writeUInt32LE(relativeId, sid.length - 4);
  return sibling;
}

/** Reads all values of an attribute, also if the server sends them in ranges (MS-ADTS, 3.1.1.3.1.3.3). */
async function allValues(c: LdapConnection, entry: LdapEntry, attribute: string): Promise<readonly string[]> {
  const values = [...entry.texts(attribute)];
  let range = entry.range(attribute);
  while (range !== undefined) {
    values.push(...range.values);
    const { next } = range;
    if (next === undefined) break;
    if (values.length > MAX_ENTRIES || range.values.length === 0)
      throw new Fault(`the values of ${attribute} do not end`);
    const attributes = [`${attribute};range=${next}-*`];
    const search = { base: entry.dn, scope: 'base', filter: '(objectClass=*)', attributes } as const;
    const [rest] = await c.search(search, 1);
    range = rest?.range(attribute);
    if (range === undefined) throw new Fault(`the rest of ${attribute} could not be read`);
  }
  return values;
}
