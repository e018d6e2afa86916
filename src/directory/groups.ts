/**
 * The groups of a person, direct and through other groups: those of the entry, those that the configured search finds, Active
 * Directory's primary group, and the groups above all of them.
 */

import { AndFilter, EqualityFilter, ExtensibleFilter, OrFilter } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import type { Connection } from './connection.ts';
import { type Entry, numberOf } from './entry.ts';
import { fillFilter } from './filter.ts';
import { GroupSet } from './group-set.ts';
import type { DirectorySettings } from './settings.ts';
import { siblingSid } from './sid.ts';
import { attributesOf, type TypeTraits } from './types.ts';

/** LDAP_MATCHING_RULE_IN_CHAIN (MS-ADTS, 3.1.1.3.4.4.3): follows groups in groups on the server. */
const IN_CHAIN = '1.2.840.113556.1.4.1941';
const MAX_ENTRIES = 10_000;
const MAX_DEPTH = 32;
/** groupOfNames, groupOfUniqueNames and posixGroup. */
const USUAL_FILTER = '(|(member={0})(uniqueMember={0})(memberUid={1}))';
/** Groups asked about in one search. */
const CHUNK = 50;
/** Groups read at a time over the one connection. */
const PARALLEL = 16;

interface Walk {
  readonly c: Connection;
  readonly settings: DirectorySettings;
  readonly traits: TypeTraits;
  /** The person's name in the directory, for `{1}`. */
  readonly username: string;
}

/** Normalised DNs, sorted. @throws Fault when not all of them could be read */
export async function groupsOf(walk: Walk, person: Entry): Promise<readonly string[]> {
  const { settings, traits } = walk;
  const found = new GroupSet();
  const named = await allValues(walk.c, person, attributesOf(traits, settings).groups);
  found.add(named);
  const searched = await searchGroups(walk, [person.dn]);
  found.add(searched);
  if (traits.type === 'active-directory') {
    const primary = await primaryGroup(walk, person);
    found.add(primary);
    if (settings.nestedGroups) found.add(await inChain(walk, [person.dn, ...primary]));
  } else if (settings.nestedGroups) {
    await walkUp(walk, found, [...named, ...searched]);
  }
  return found.list();
}

/** The search for groups, where there is one. Active Directory needs none: its entries and its matching rule say all. */
function groupFilter({ groupSearchFilter, groupSearchBase }: DirectorySettings, { type }: TypeTraits): string | undefined {
  const isSearched = groupSearchBase !== undefined && type !== 'active-directory';
  return groupSearchFilter ?? (isSearched ? USUAL_FILTER : undefined);
}

/** Whether more than the person's own entry must be read to know the groups. */
export function needsReading(settings: DirectorySettings, traits: TypeTraits, person: Entry): boolean {
  const { groups } = attributesOf(traits, settings);
  if (traits.type === 'active-directory' || groupFilter(settings, traits) !== undefined) return true;
  if (person.range(groups) !== undefined) return true;
  return settings.nestedGroups && traits.nesting === 'walk' && person.texts(groups).length > 0;
}

/** Level by level, each group once, so that a circle of groups ends where it began. */
async function walkUp(walk: Walk, found: GroupSet, start: readonly string[]): Promise<void> {
  const filter = groupFilter(walk.settings, walk.traits);
  const bySearch = filter?.includes('{0}') === true;
  if (!bySearch && walk.traits.nesting === 'in-member-of') return;
  let level: readonly string[] = start;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_DEPTH) throw new Fault(`groups are nested more than ${MAX_DEPTH} deep`);
    level = found.add(bySearch ? await searchGroups(walk, level) : await groupsOfGroups(walk, level));
  }
}

/** The configured search, for a person or for groups. */
async function searchGroups({ c, settings, traits, username }: Walk, members: readonly string[]): Promise<readonly string[]> {
  const template = groupFilter(settings, traits);
  if (template === undefined) return [];
  const base = settings.groupSearchBase ?? settings.baseDn;
  const dns: string[] = [];
  for (let at = 0; at < members.length; at += CHUNK) {
    const filters = members.slice(at, at + CHUNK).map((dn) => fillFilter(template, [dn, username]));
    const filter = filters.length === 1 ? (filters[0] ?? '') : `(|${filters.join('')})`;
    const entries = await c.searchAll({ base, scope: 'sub', filter, attributes: ['1.1'] }, MAX_ENTRIES);
    dns.push(...entries.map(({ dn }) => dn));
  }
  return dns;
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
    if (values.length > MAX_ENTRIES || range.values.length === 0) throw new Fault(`the values of ${attribute} do not end`);
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
