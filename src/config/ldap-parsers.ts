/** How the values of `ldap.*` are read. */

import { parseAddress } from '../decision/address.ts';
import { fold, normaliseDn } from '../directory/dn.ts';
import { decodeHighBytes, isFilterTemplate } from '../directory/filter.ts';
import type { AttributeNames, DirectoryUrl } from '../directory/settings.ts';
import { isDnPattern } from '../directory/user-name.ts';
import { parseRoleName, parseTenantId, type RoleName, type TenantId } from '../domain/ids.ts';
import { didYouMean } from './nearest.ts';
import { type Flaw, flaw, listOf, type Parsed, type Parser, parseJson, rawOf, scalar, value } from './parsers.ts';

/** One, or a list of them; in the environment a list is JSON. */
function oneOrMore<T>(expected: string, item: Parser<T>): Parser<readonly T[]> {
  const list = listOf(expected, item);
  return (raw) => {
    if (raw.kind === 'data' || raw.text.startsWith('[')) {
      const parsed = list(raw);
      return parsed.kind === 'value' && parsed.value.length === 0 ? flaw(expected, raw) : parsed;
    }
    const parsed = item(raw);
    return parsed.kind === 'value' ? value([parsed.value]) : parsed;
  };
}

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

/** What a service account binds as. */
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

/** @param example shown when the filter is none */
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

export const attributeMapping: Parser<Partial<AttributeNames>> = (raw) => {
  const map = mapOf(raw.kind === 'data' ? raw.value : parseJson(raw.text));
  if (map === undefined) return flaw(`a map of ${Object.keys(MEMBERS).join(', ')} to attributes`, raw);
  const flaws: Flaw[] = [];
  const names: Partial<Record<keyof AttributeNames, string>> = {};
  for (const [key, given] of Object.entries(map)) {
    const member = Object.hasOwn(MEMBERS, key) ? MEMBERS[key] : undefined;
    const isAttribute =
      typeof given === 'string' && /^[A-Za-z][A-Za-z0-9-]{0,127}$/.test(given) && given.toLowerCase() !== 'dn';
    if (member === undefined) {
      flaws.push({ at: [key], expected: `unknown key${didYouMean(key, Object.keys(MEMBERS))}` });
    } else if (isAttribute) {
      names[member] = given;
    } else {
      flaws.push(...flawsOf(flaw('the name of an attribute', rawOf(given), [key])));
    }
  }
  return flaws.length > 0 ? { kind: 'flaws', flaws } : value(names);
};

const ROLE = scalar('the name of a role', parseRoleName);
export const groupRoles: Parser<ReadonlyMap<string, readonly RoleName[]>> = byGroup(
  'a map of group DNs to roles',
  oneOrMore('the name of a role, or a list of them', ROLE),
);

export const tenantId: Parser<TenantId> = scalar('the id of a tenant', parseTenantId);
export const groupTenants: Parser<ReadonlyMap<string, TenantId>> = byGroup('a map of group DNs to tenants', tenantId);

/** A map whose keys are DNs, compared whole: two spellings of one group are the same key twice. */
function byGroup<T>(expected: string, item: Parser<T>): Parser<ReadonlyMap<string, T>> {
  return (raw) => {
    const map = mapOf(raw.kind === 'data' ? raw.value : parseJson(raw.text));
    if (map === undefined) return flaw(expected, raw);
    const flaws: Flaw[] = [];
    const groups = new Map<string, T>();
    for (const [key, given] of Object.entries(map)) {
      const dn = normaliseDn(key);
      const parsed = item(rawOf(given));
      if (dn === undefined || dn === '') {
        flaws.push(...flawsOf(flaw('the DN of a group as the key', rawOf(key), [key])));
      } else if (groups.has(dn)) {
        flaws.push({ at: [key], expected: 'the same group twice' });
      } else if (parsed.kind === 'value') {
        groups.set(dn, parsed.value);
      } else {
        flaws.push(...parsed.flaws.map((inner) => ({ ...inner, at: [key, ...inner.at] })));
      }
    }
    return flaws.length > 0 ? { kind: 'flaws', flaws } : value(groups);
  };
}

export const directoryDomains: Parser<readonly string[]> = oneOrMore(
  'a domain, or a list of them',
  scalar('a domain, such as corp.example or CORP', (text) => (/^[^\s@\\]{1,255}$/.test(text) ? fold(text) : undefined)),
);

const UNIT_MS = { ms: 1, s: 1000 } as const;

/** Milliseconds. Somebody waits at the login: a minute is the most. */
export const directoryTimeout: Parser<number> = scalar('a duration from 100ms to 60s', (text) => {
  const [, digits, unit] = /^(\d{1,5})(ms|s)$/.exec(text) ?? [];
  const ms = unit === 'ms' || unit === 's' ? Number(digits) * UNIT_MS[unit] : 0;
  return ms >= 100 && ms <= 60_000 ? ms : undefined;
});

export function mapOf(data: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof data === 'object' && data !== null && !Array.isArray(data) ? { ...data } : undefined;
}

function flawsOf(parsed: Parsed<unknown>): readonly Flaw[] {
  return parsed.kind === 'flaws' ? parsed.flaws : [];
}
