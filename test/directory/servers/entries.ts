/**
 * People and groups as entries of the directories that follow RFC 4519 and RFC 2307: OpenLDAP, 389 Directory Server,
 * FreeIPA.
 */

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Entry } from './ldif.ts';
import {
  crowdNames,
  GROUPS,
  type Group,
  groupDn,
  OPERATORS_GID,
  PEOPLE,
  PERSON_KEYS,
  type Person,
  type Places,
  uidDn,
} from './people.ts';

/** The additions of one kind of directory to an entry. */
export interface Flavour {
  readonly places: Places;
  readonly personClasses: readonly string[];
  readonly groupClasses: readonly string[];
  person(one: Person): Entry['attributes'];
  group(cn: string): Entry['attributes'];
}

/** The first POSIX number of the users. No group has one of these numbers. */
const FIRST_NUMBER = 20_000;

export function personEntries(flavour: Flavour): Entry[] {
  return PERSON_KEYS.map((key, index) => {
    const one: Person = PEOPLE[key];
    const number = String(FIRST_NUMBER + index);
    return {
      dn: uidDn(flavour.places, one),
      attributes: {
        objectClass: ['top', 'inetOrgPerson', 'posixAccount', ...flavour.personClasses],
        uid: one.login,
        cn: one.cn,
        sn: one.sn,
        displayName: one.cn,
        mail: mailOf(key),
        uidNumber: number,
        gidNumber: one.primaryGroup === undefined ? number : OPERATORS_GID,
        homeDirectory: `/home/${key}`,
        userPassword: salted(one.password),
        ...flavour.person(one),
      },
    };
  });
}

export function mailOf(key: string): string {
  return `${key.toLowerCase()}@corp.example`;
}

/** {SSHA}: SHA-1 over password and salt, then the salt. */
export function salted(password: string): string {
  const salt = randomBytes(8);
  const digest = createHash('sha1').update(password, 'utf8').update(salt).digest();
  return `{SSHA}${Buffer.concat([digest, salt]).toString('base64')}`;
}

export function crowdEntries(flavour: Flavour): Entry[] {
  return crowdNames().map((name) => ({
    dn: `uid=${name},${flavour.places.people}`,
    attributes: {
      objectClass: ['top', 'inetOrgPerson', ...flavour.personClasses.filter((each) => each === 'nsMemberOf')],
      uid: name,
      cn: name,
      sn: name,
    },
  }));
}

export function groupEntries(flavour: Flavour): Entry[] {
  const { places } = flavour;
  const entry = (cn: string, member: readonly string[], elsewhere = false): Entry => ({
    dn: groupDn(places, cn, elsewhere),
    attributes: { objectClass: ['top', 'groupOfNames', ...flavour.groupClasses], cn, member, ...flavour.group(cn) },
  });
  const members = (group: Group): string[] => [
    ...group.people.map((key) => uidDn(places, PEOPLE[key])),
    ...(group.groups ?? []).map((cn) => groupDn(places, cn)),
  ];
  return [
    // A group of names has to have a name in it.
    ...GROUPS.map((group) =>
      entry(group.cn, members(group).length > 0 ? members(group) : [`uid=crowd0,${places.people}`], group.elsewhere),
    ),
    entry('everyone', [uidDn(places, PEOPLE.big), ...crowdNames().map((name) => `uid=${name},${places.people}`)]),
    {
      dn: groupDn(places, 'reviewers'),
      attributes: {
        objectClass: ['top', 'groupOfUniqueNames'],
        cn: 'reviewers',
        uniqueMember: uidDn(places, PEOPLE.unique),
      },
    },
    posix(places, 'printers', '5002', [PEOPLE.posix.login]),
    posix(places, 'operators', OPERATORS_GID, []),
  ];
}

function posix(places: Places, cn: string, gidNumber: string, memberUid: readonly string[]): Entry {
  return { dn: groupDn(places, cn), attributes: { objectClass: ['top', 'posixGroup'], cn, gidNumber, memberUid } };
}

export function makeUuid(): string {
  return randomUUID();
}
