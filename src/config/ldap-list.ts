/** `ldap:` as a list: each map is read like the one of a single directory. */

import type { Key } from './key.ts';
import { LDAP, memberName } from './ldap-keys.ts';
import { mapOf } from './ldap-parsers.ts';
import { type LdapValues, takeLdap } from './ldap-values.ts';
import { didYouMean } from './nearest.ts';
import { type Flaw, flaw, type Parser, parseJson, rawOf, value } from './parsers.ts';
import { readSecret, SECRET_FILE_EXPECTED } from './secret-file.ts';

const EXPECTED = 'a list of maps of ldap settings';
const MEMBERS: ReadonlySet<string> = new Set(Object.values(LDAP).map(({ path }) => memberName(path)));
const PASSWORD = memberName(LDAP.ldapBindPassword.path);
const PASSWORD_FILE = `${PASSWORD}-file`;

export interface LdapItem {
  readonly values: LdapValues;
  /** Members that were given. */
  readonly given: ReadonlySet<string>;
}

export const ldapDirectories: Parser<readonly LdapItem[]> = (raw) => {
  const list = raw.kind === 'data' ? raw.value : parseJson(raw.text);
  if (!Array.isArray(list)) return flaw(raw.kind === 'text' ? `${EXPECTED} as JSON` : EXPECTED, raw);
  const flaws: Flaw[] = [];
  const items = list.map((one: unknown, index) =>
    readItem(one, (found) => flaws.push({ ...found, at: [index, ...found.at] })),
  );
  return flaws.length > 0 ? { kind: 'flaws', flaws } : value(items.filter((item) => item !== undefined));
};

function readItem(one: unknown, report: (flaw: Flaw) => void): LdapItem | undefined {
  const given = mapOf(one);
  if (given === undefined) {
    report({ at: [], expected: 'expected a map of ldap settings' });
    return undefined;
  }
  const map = new Map(Object.entries(given).filter(([, member]) => member !== null && member !== undefined));
  for (const name of map.keys()) {
    if (!MEMBERS.has(name) && name !== PASSWORD_FILE) {
      const isName = /^[a-z][a-z0-9-]{0,40}$/.test(name);
      report({ at: isName ? [name] : [], expected: `unknown key${isName ? didYouMean(name, MEMBERS) : ''}` });
    }
  }
  const file = map.get(PASSWORD_FILE);
  if (file !== undefined) {
    const content = typeof file === 'string' ? readSecret(file) : undefined;
    if (map.has(PASSWORD)) report({ at: [PASSWORD_FILE], expected: `set this or ${PASSWORD}, not both` });
    else if (content === undefined) report({ at: [PASSWORD_FILE], expected: SECRET_FILE_EXPECTED });
    else map.set(PASSWORD, content);
  }
  const take = <T>(key: Key<T>): T => {
    const name = memberName(key.path);
    const member = map.get(name);
    const parsed = member === undefined ? undefined : key.parse(rawOf(member));
    if (parsed?.kind === 'flaws') for (const found of parsed.flaws) report({ ...found, at: [name, ...found.at] });
    return parsed?.kind === 'value' ? parsed.value : key.fallback;
  };
  return { values: takeLdap(take), given: new Set(map.keys()) };
}
