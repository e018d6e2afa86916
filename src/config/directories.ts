/** The directories of the settings `ldap`. Reports missing settings, and settings that exclude each other. */

import { normaliseDn } from '../directory/dn.ts';
import type { DirectorySettings } from '../directory/settings.ts';
import { isDnPattern } from '../directory/user-name.ts';
import type { Config, DirectoryConfig, Secrets } from './config.ts';
import type { ValuePath } from './config-error.ts';
import { readPem } from './files.ts';
import type { LdapItem } from './ldap-list.ts';
import { LDAP_SETTINGS, type LdapValues, memberName } from './ldap-settings.ts';
import { settingsOf } from './setting.ts';

interface LdapGiven {
  readonly single: LdapValues;
  readonly list: readonly LdapItem[] | undefined;
  readonly isGiven: (path: string) => boolean;
}

type ReportMember = (member: string, message: string) => void;

export function loadDirectories(
  { single, list, isGiven }: LdapGiven,
  report: (path: string, message: string, at?: ValuePath) => void,
): Pick<Config, 'directories'> & Pick<Secrets, 'directoryPasswords'> {
  const inMap = settingsOf(LDAP_SETTINGS)
    .map(({ path }) => path)
    .filter(isGiven);
  if (isGiven('ldap')) {
    for (const path of inMap) report(path, 'ldap is a list: set this in one of its entries');
  }
  const items = isGiven('ldap')
    ? (list ?? []).map((item, index) => ({
        ...item,
        report: (member: string, message: string) => report('ldap', message, [index, member]),
      }))
    : [
        {
          values: single,
          given: new Set(inMap.map(memberName)),
          report: (member: string, message: string) => report(`ldap.${member}`, message),
        },
      ];
  const directories: Reported[] = [];
  const directoryPasswords: Record<string, string> = {};
  for (const item of items) {
    const directory = directoryOf(item.values, item.given, item.report);
    if (directory === undefined) continue;
    if (directories.some((other) => other.directory.name === directory.name))
      item.report('name', 'expected a unique name for each directory');
    directories.push({ directory, report: item.report });
    if (item.values.bindPassword !== undefined) directoryPasswords[directory.name] = item.values.bindPassword;
  }
  if (directories.length > 1) checkTogether(directories);
  return { directories: directories.map(({ directory }) => directory), directoryPasswords };
}

interface Reported {
  readonly directory: DirectoryConfig;
  readonly report: ReportMember;
}

/** The name alone must decide which directory gets a password, not the contents or the answer of another directory. */
function checkTogether(all: readonly Reported[]): void {
  const owners = new Map<string, string>();
  for (const { directory, report } of all) {
    const { name, domains, namesWithoutDomain } = directory;
    if (domains.length === 0 && !namesWithoutDomain) {
      report('domain', 'required with several directories, or ldap.names-without-domain: true for one of them');
    }
    for (const domain of domains) {
      const owner = owners.get(domain);
      if (owner !== undefined)
        report('domain', `expected domains that no other directory has, but ${domain} also belongs to ${owner}`);
      owners.set(domain, name);
    }
  }
  const open = all.filter(({ directory }) => directory.namesWithoutDomain);
  for (const { directory, report } of open.slice(0, -1)) {
    if (directory.userDnPattern === undefined) continue;
    report(
      'names-without-domain',
      'expected false with ldap.user-dn-pattern, except in the last directory: with a pattern, the bind sends the password before the directory is known to have the user',
    );
  }
}

/** Undefined if the directory is not enabled. */
function directoryOf(
  { enabled, caFile, bindPassword: _, urls = [], baseDn = '', domains = [], ...values }: LdapValues,
  given: ReadonlySet<string>,
  report: ReportMember,
): DirectoryConfig | undefined {
  if (given.has('bind-dn') !== given.has('bind-password')) {
    const [present, missing] = given.has('bind-dn') ? ['bind-dn', 'bind-password'] : ['bind-password', 'bind-dn'];
    report(missing, `required with ldap.${present}`);
  }
  const ca = caFile === undefined ? undefined : readPem(caFile, 'certificate', (message) => report('ca-file', message));
  if (!enabled) return undefined;
  for (const member of ['url', 'base-dn']) {
    if (!given.has(member)) report(member, 'required with ldap.enabled');
  }
  const base = values.userSearchBase ?? baseDn;
  if (values.userDnPattern !== undefined && !isBelow(values.userDnPattern, base)) {
    report('user-dn-pattern', `expected the whole DN of a user below ${base}, such as uid={0},${base}`);
  }
  if (values.type === 'openldap' && values.memberOf !== 'trusted' && values.attributes.groups !== undefined) {
    report('attribute-mapping', 'the groups attribute is read only with ldap.member-of: trusted');
  }
  if (values.startTls && urls.some(({ secure }) => secure)) {
    report('start-tls', 'expected false with an ldaps:// URL, which already uses TLS');
  }
  return { ...values, urls, baseDn, domains, ca };
}

/** Users outside the base log in by their DN, but no search of a refresh finds them. A name that is no DN has no place. */
function isBelow(pattern: string, base: string): boolean {
  const [dn, root] = [normaliseDn(pattern.replace('{0}', 'x')), normaliseDn(base)];
  return !isDnPattern(pattern) || root === '' || dn?.endsWith(`,${root}`) === true;
}

/** Joins the configuration of the directories with their passwords. */
export function directorySettings(
  { directories }: Pick<Config, 'directories'>,
  { directoryPasswords }: Pick<Secrets, 'directoryPasswords'>,
): readonly DirectorySettings[] {
  return directories.map(({ bindDn, ...settings }) => {
    const password = directoryPasswords[settings.name];
    return {
      ...settings,
      serviceAccount: bindDn === undefined || password === undefined ? undefined : { dn: bindDn, password },
    };
  });
}
