/**
 * Names that would be more than a name if they were not escaped, and how the servers' own logs show what they took them
 * for.
 */

import type { DirectoryKind, DirectoryServer } from './servers/server.ts';

/** The tests type each of these with the password that all users have; `admin` is a user. */
export const INJECTIONS: readonly string[] = [
  '*',
  'adm*',
  '*)(uid=admin',
  'admin)(|(uid=*',
  'admin\0',
  'ad\0min',
  'admin,cn=admins',
  '#admin',
  ' admin',
  'admin ',
  'admin+"<>;=\\',
  'admin\\',
  '\\61dmin',
];

/** One value: every character with a meaning in a filter is escaped (RFC 4515, section 3). */
const VALUE = String.raw`((?:[^()*\\]|\\[0-9A-Fa-f]{2})*)`;

interface LogForm {
  /** A line about the search for a person; the filter. */
  readonly line: RegExp;
  /** The whole filter, with the name where it belongs. */
  readonly filter: RegExp;
}

const BY_PERSON: LogForm = {
  line: / SRCH base="[^"]*" scope=2 filter="(\(&\(objectClass=person\).*)" attrs=/,
  filter: new RegExp(String.raw`^\(&\(objectClass=person\)\(uid=${VALUE}\)\)$`),
};

const FORMS: Readonly<Record<DirectoryKind, LogForm>> = {
  openldap: {
    line: / SRCH base="[^"]*" scope=2 deref=0 filter="(\(uid=.*)"$/,
    filter: new RegExp(String.raw`^\(uid=${VALUE}\)$`),
  },
  '389ds': BY_PERSON,
  freeipa: BY_PERSON,
  'active-directory': {
    line: /LDAP Query: .* filter: \[(\(&\(objectCategory=.*)\] basedn:/,
    filter: new RegExp(
      String.raw`^\(&\(objectCategory=[^()]*\)\(objectClass=user\)\(\|\(sAMAccountName=${VALUE}\)\(userPrincipalName=\1\)\)\)$`,
    ),
  },
};

/** The names that were searched for, in order. A filter with more or less in it than one name shows as it is. */
export function searchedNames(server: DirectoryServer, log: string): string[] {
  const { line, filter } = FORMS[server.kind];
  return log.split('\n').flatMap((each) => {
    const logged = line.exec(each)?.[1];
    if (logged === undefined) return [];
    const value = filter.exec(logged)?.[1];
    return [value === undefined ? `not one value: ${logged}` : comparable(unescaped(value))];
  });
}

/** Returns the names in the bind DNs below people, in order. */
export function boundNames(server: DirectoryServer, log: string): string[] {
  return log.split('\n').flatMap((each) => {
    const dn = / BIND dn="(.*)" method=128/.exec(each)?.[1];
    if (dn === undefined || !dn.endsWith(`,${server.people}`)) return [];
    const rdn = dn.slice(0, -server.people.length - 1);
    // One attribute with one value: nothing that ends either stands there as itself (RFC 4514, section 3).
    const value = /^uid=((?:[^,+"\\<>;=]|\\[0-9A-Fa-f]{2}|\\[^0-9A-Fa-f])*)$/.exec(rdn)?.[1];
    return [value === undefined ? `not one value: ${dn}` : comparable(unescaped(value))];
  });
}

/**
 * OpenLDAP logs what it compares: without blanks around it. 389 Directory Server logs up to a NUL, or the digits of its
 * escape.
 */
export function comparable(name: string): string {
  const nul = name.search(/\0|000?(?=min$|$)/);
  return (nul === -1 ? name : name.slice(0, nul)).trim().toLowerCase();
}

function unescaped(value: string): string {
  const bytes = value.replace(
    /\\([0-9A-Fa-f]{2})|\\(.)|([^\\])/gsu,
    (_, hex?: string, plain?: string, other?: string) =>
      hex === undefined
        ? Buffer.from(plain ?? other ?? '').toString('latin1')
        : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
