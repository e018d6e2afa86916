/** Parsers for the values of `ldap.*`. */

import { parseAddress } from '../decision/address.ts';
import { foldName, normaliseDn } from '../directory/dn.ts';
import { decodeHighBytes, isFilterTemplate } from '../directory/filter.ts';
import type { AttributeNames, DirectoryUrl } from '../directory/settings.ts';
import { isDnPattern } from '../directory/user-name.ts';
import { parseRoleName, parseTenantId, type RoleName, type TenantId } from '../domain/ids.ts';
import { didYouMean } from './config-error.ts';
import { type Flaw, flaw, flawsAt, map, oneOrMore, type Parser, rawOf, scalar, valueUnless } from './parsers.ts';

const URL_FORM = /^(ldaps?):\/\/(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})))(?::(\d{1,5}))?\/?$/;

const directoryUrl = scalar('ldap://host:port or ldaps://host:port', (text): DirectoryUrl | undefined => {
  const [, scheme, v6, name, digits] = URL_FORM.exec(text) ?? [];
  const host = v6 ?? name;
  const port = digits === undefined ? (scheme === 'ldaps' ? 636 : 389) : Number(digits);
  const isAddress = v6 === undefined || parseAddress(v6) !== undefined;
  if (host === undefined || !isAddress || port < 1 || port > 65_535) return undefined;
  return { text, secure: scheme === 'ldaps', host, port };
});

export const directoryUrls = oneOrMore('a list of ldap://host:port or ldaps://host:port', directoryUrl);

export const dnText: Parser<string> = scalar('a DN, such as dc=example,dc=com', (text) =>
  normaliseDn(text) === undefined ? undefined : text,
);

/** The name with which a service account binds. */
export const bindName: Parser<string> = scalar('a DN, name@domain or DOMAIN\\name', (text) => {
  const isOther = /^[^\s=@\\][^=@\\]*@[^\s=@\\]+$/.test(text) || /^[^\s=@\\]+\\[^=@\\]+$/.test(text);
  return isOther || (text.includes('=') && normaliseDn(text) !== undefined) ? text : undefined;
});

export const userDnPattern: Parser<string> = scalar(
  'uid={0},ou=people,dc=example,dc=com, {0}@example.com or EXAMPLE\\{0}: with {0} once, for the name',
  (text) => {
    if (text.split('{0}').length !== 2) return undefined;
    if (isDnPattern(text)) return normaliseDn(text.replace('{0}', 'x')) === undefined ? undefined : text;
    return /^\{0\}@[^\s@\\{}]+$/.test(text) || /^[^\s@\\{}]+\\\{0\}$/.test(text) ? text : undefined;
  },
);

/** @param example part of the error message */
export function filterTemplate(example: string): Parser<string> {
  return scalar(`a search filter in parentheses with {0}, such as ${example}`, (text) => {
    const template = /\{[01]\}/.test(text) ? decodeHighBytes(text) : undefined;
    return template !== undefined && isFilterTemplate(template) ? template : undefined;
  });
}

const MEMBERS: Readonly<Record<string, keyof AttributeNames>> = {
  username: 'username',
  email: 'email',
  'display-name': 'displayName',
  groups: 'groups',
};
const MEMBER_NAMES = Object.keys(MEMBERS);
const ATTRIBUTE = scalar('the name of an attribute', (text) =>
  /^[A-Za-z][A-Za-z0-9-]{0,127}$/.test(text) && text.toLowerCase() !== 'dn' ? text : undefined,
);

export const attributeMapping: Parser<Partial<AttributeNames>> = map(
  `a map of ${MEMBER_NAMES.join(', ')} to attributes`,
  (members) => {
    const flaws: Flaw[] = [];
    const names: Partial<Record<keyof AttributeNames, string>> = {};
    for (const [key, given] of members) {
      const member = Object.hasOwn(MEMBERS, key) ? MEMBERS[key] : undefined;
      const parsed = typeof given === 'string' ? ATTRIBUTE.parse(rawOf(given)) : flaw(ATTRIBUTE.expected, rawOf(given));
      if (member === undefined) {
        flaws.push({ at: [key], expected: `unknown key${didYouMean(key, MEMBER_NAMES)}` });
      } else if (parsed.kind === 'value') {
        names[member] = parsed.value;
      } else {
        flaws.push(...flawsAt(key, parsed));
      }
    }
    return valueUnless(flaws, names);
  },
);

const ROLE = scalar('the name of a role', parseRoleName);
export const groupRoles: Parser<ReadonlyMap<string, readonly RoleName[]>> = byGroup(
  'a map of group DNs to roles',
  oneOrMore('the name of a role, or a list of them', ROLE),
);

export const TENANT_ID: Parser<TenantId> = scalar('the id of a tenant', parseTenantId);
export const groupTenants: Parser<ReadonlyMap<string, TenantId>> = byGroup('a map of group DNs to tenants', TENANT_ID);

/** A map with normalised DNs as keys: two spellings of one group are the same key twice. */
function byGroup<T>(expected: string, item: Parser<T>): Parser<ReadonlyMap<string, T>> {
  return map(expected, (members) => {
    const flaws: Flaw[] = [];
    const groups = new Map<string, T>();
    for (const [key, given] of members) {
      const dn = normaliseDn(key);
      const parsed = item.parse(rawOf(given));
      if (dn === undefined || dn === '') {
        flaws.push(...flawsAt(key, flaw('the DN of a group as the key', rawOf(key))));
      } else if (groups.has(dn)) {
        flaws.push({ at: [key], expected: 'the same group twice' });
      } else if (parsed.kind === 'value') {
        groups.set(dn, parsed.value);
      } else {
        flaws.push(...flawsAt(key, parsed));
      }
    }
    return valueUnless(flaws, groups);
  });
}

export const directoryDomains: Parser<readonly string[]> = oneOrMore(
  'a domain, or a list of them',
  scalar('a domain, such as corp.example or CORP', (text) =>
    /^[^\s@\\]{1,255}$/.test(text) ? foldName(text) : undefined,
  ),
);
