/** `ldap` as a list: each map has the settings of one directory. */

import { didYouMean } from './config-error.ts';
import { readSecret, SECRET_FILE_EXPECTED } from './files.ts';
import { LDAP_SETTINGS, type LdapValues, memberName } from './ldap-settings.ts';
import { type Flaw, flawsAt, list, membersOf, type ParseResult, rawOf, valueUnless } from './parsers.ts';
import { settingsOf, valuesOf } from './setting.ts';

const MEMBERS: ReadonlySet<string> = new Set(settingsOf(LDAP_SETTINGS).map(({ path }) => memberName(path)));
const PASSWORD = memberName(LDAP_SETTINGS.bindPassword.path);
const PASSWORD_FILE = `${PASSWORD}-file`;

export interface LdapItem {
  readonly values: LdapValues;
  /** The members that were given. */
  readonly given: ReadonlySet<string>;
}

export const ldapDirectories = list('a list of maps of ldap settings', { type: 'array' }, readItem);

function readItem(item: unknown): ParseResult<LdapItem> {
  const members = membersOf(item);
  if (members === undefined) {
    return { kind: 'flaws', flaws: [{ at: [], expected: 'expected a map of ldap settings' }] };
  }
  const flaws: Flaw[] = [];
  const given = new Map(members.filter(([, member]) => member !== null && member !== undefined));
  for (const name of given.keys()) {
    if (!MEMBERS.has(name) && name !== PASSWORD_FILE) {
      const isName = /^[a-z][a-z0-9-]{0,40}$/.test(name);
      flaws.push({ at: isName ? [name] : [], expected: `unknown key${isName ? didYouMean(name, MEMBERS) : ''}` });
    }
  }
  const file = given.get(PASSWORD_FILE);
  if (file !== undefined) {
    const content = typeof file === 'string' ? readSecret(file) : undefined;
    if (given.has(PASSWORD)) flaws.push({ at: [PASSWORD_FILE], expected: `set this or ${PASSWORD}, not both` });
    else if (content === undefined) flaws.push({ at: [PASSWORD_FILE], expected: SECRET_FILE_EXPECTED });
    else given.set(PASSWORD, content);
  }
  const values = valuesOf(LDAP_SETTINGS, ({ path, parser, fallback }) => {
    const name = memberName(path);
    const member = given.get(name);
    const parsed = member === undefined ? undefined : parser.parse(rawOf(member));
    if (parsed !== undefined) flaws.push(...flawsAt(name, parsed));
    return parsed?.kind === 'value' ? parsed.value : fallback;
  });
  return valueUnless(flaws, { values, given: new Set(given.keys()) });
}
