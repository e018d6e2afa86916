/**
 * The groups of a person, direct and through other groups: those of the entry where it is trusted to name them, those that the search for
 * groups finds, Active Directory's primary group, and the groups above all of them.
 */

import { randomUUID } from 'node:crypto';
import { AndFilter, EqualityFilter, ExtensibleFilter, OrFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import type { Connection } from './connection.ts';
import { type Entry, numberOf } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import { fillFilter } from './filter.ts';
import { GroupSet } from './group-set.ts';
import type { DirectorySettings } from './settings.ts';
import { siblingSid } from './sid.ts';
import { attributesOf, type TypeTraits, trustsMemberOf } from './types.ts';

/** LDAP_MATCHING_RULE_IN_CHAIN (MS-ADTS, 3.1.1.3.4.4.3): follows groups in groups on the server. */
const IN_CHAIN = '1.2.840.113556.1.4.1941';
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;
/** groupOfNames, groupOfUniqueNames and posixGroup. */
const USUAL_FILTER = '(|(member={0})(uniqueMember={0})(memberUid={1}))';
/** The groups that a group is in, where the configured filter finds people by name only. */
const NESTED_FILTER = '(|(member={0})(uniqueMember={0}))';
/** Groups asked about in one search. */
const CHUNK = 50;
/** Codes by which a server says that an answer is larger than it gives: sizeLimitExceeded, adminLimitExceeded. */
const OVER_A_LIMIT = [4, 11];
/** Groups read at a time over the one connection. */
const PARALLEL = 16;

interface Walk {
  readonly c: Connection;
  readonly settings: DirectorySettings;
  readonly traits: TypeTraits;
  /** The person's name in the directory, for `{1}`; undefined = the entry shows none, and no group can list it. */
  readonly account: string | undefined;
}

/** Normalised DNs, sorted. @throws Fault when not all of them could be read */
export async function groupsOf(walk: Walk, person: Entry): Promise<readonly string[]> {
  const { settings, traits } = walk;
  const found = new GroupSet();
  const isTrusted = trustsMemberOf(traits, settings);
  const named = isTrusted ? found.add(await allValues(walk.c, person, attributesOf(traits, settings).groups)) : [];
  const isWalked = settings.nestedGroups && traits.type !== 'active-directory';
  const template = groupFilter(settings, traits);
  if (isWalked && template?.includes('{0}') === true) {
    // The person is asked about together with the groups that are known already: nearly always that one search finds all.
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
 * The search for groups; undefined when there is none. Active Directory needs none: its entries and its matching rule say all. Where the
 * entry is not trusted there is always one.
 */
function groupFilter(settings: DirectorySettings, traits: TypeTraits): string | undefined {
  const isSearched = settings.groupSearchBase !== undefined && traits.type !== 'active-directory';
  return settings.groupSearchFilter ?? (isSearched || !trustsMemberOf(traits, settings) ? USUAL_FILTER : undefined);
}

/** Reports whether groups are searched that list people by name. */
export function isSearchedByName(settings: DirectorySettings, traits: TypeTraits): boolean {
  return groupFilter(settings, traits)?.includes('{1}') === true;
}

/** Whether more than the person's own entry must be read to know the groups. */
export function needsReading(settings: DirectorySettings, traits: TypeTraits, person: Entry): boolean {
  const { groups } = attributesOf(traits, settings);
  if (traits.type === 'active-directory' || groupFilter(settings, traits) !== undefined) return true;
  if (person.range(groups) !== undefined) return true;
  return settings.nestedGroups && traits.nesting === 'walk' && person.texts(groups).length > 0;
}

interface Steps {
  readonly maxLevels: number;
  /** The groups that those of one level are in. */
  readonly above: (level: readonly string[]) => Promise<readonly string[]>;
}

/** Level by level, each group once, so that a circle of groups ends where it began. */
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

/** In one search, unless all of them together are in more groups than the server gives at a time: then half by half. */
async function searchTogether(walk: Walk, template: string, members: readonly string[]): Promise<readonly string[]> {
  // A name that nobody has: the filter stays whole, and its part by name finds nothing.
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

/** Where no search is configured: what the groups' own entries say that they are in. */
async function groupsOfGroups({ c, settings, traits }: Walk, groups: readonly string[]): Promise<readonly string[]> {
  const attribute = attributesOf(traits, settings).groups;
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

/** All groups above these, by the server's own rule. */
async function inChain({ c, settings }: Walk, members: readonly string[]): Promise<readonly string[]> {
  const filters = members.map((value) => new ExtensibleFilter({ matchType: 'member', rule: IN_CHAIN, value }));
  const base = settings.groupSearchBase ?? settings.baseDn;
  // Without it the server tries the rule on every entry of the domain.
  const isGroup = new EqualityFilter({ attribute: 'objectCategory', value: 'group' });
  const filter = new AndFilter({ filters: [isGroup, new OrFilter({ filters })] });
  const entries = await c.searchAll({ base, scope: 'sub', filter, attributes: ['1.1'] }, MAX_ENTRIES);
  return entries.map(({ dn }) => dn);
}

/** In Active Directory nobody is listed as a member of the primary group, and `memberOf` leaves it out: the entry names it by number. */
async function primaryGroup({ c, settings }: Walk, person: Entry): Promise<readonly string[]> {
  const [sid, relativeId] = [person.bytes('objectSid')[0], numberOf(person, 'primaryGroupID')];
  const value = sid && relativeId !== undefined ? siblingSid(sid, Number(relativeId)) : undefined;
  if (value === undefined) return [];
  const filter = new EqualityFilter({ attribute: 'objectSid', value });
  const entries = await c.search({ base: settings.baseDn, scope: 'sub', filter, attributes: ['1.1'] }, 2);
  return entries.map(({ dn }) => dn);
}

/** Every value of an attribute, also where the server gives them in pieces (MS-ADTS, 3.1.1.3.1.3.3). */
export async function allValues(c: Connection, entry: Entry, attribute: string): Promise<readonly string[]> {
  const values = [...entry.texts(attribute)];
  let range = entry.range(attribute);
  while (range !== undefined) {
    values.push(...range.values);
    const { next } = range;
    if (next === undefined) break;
    if (values.length > MAX_ENTRIES || range.values.length === 0)
      throw new Fault(`the values of ${attribute} do not end`);
    const question = {
      base: entry.dn,
      scope: 'base',
      filter: '(objectClass=*)',
      attributes: [`${attribute};range=${next}-*`],
    } as const;
    const [rest] = await c.search(question, 1);
    range = rest?.range(attribute);
    if (range === undefined) throw new Fault(`the rest of ${attribute} could not be read`);
  }
  return values;
}
