/** From the settings of `ldap` to the directories that people log in with: what is required is there, and what is together fits. */

import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { DirectorySettings } from '../directory/settings.ts';
import type { Config, DirectoryConfig, Secrets } from './config.ts';
import { LDAP, memberName } from './ldap-keys.ts';
import type { LdapItem } from './ldap-list.ts';
import type { LdapValues } from './ldap-values.ts';
import type { Steps } from './problems.ts';

/** @param at steps below the path */
type Report = (path: string, message: string, at?: Steps) => void;

export interface LdapGiven {
  readonly single: LdapValues;
  readonly list: readonly LdapItem[] | undefined;
  readonly isGiven: (path: string) => boolean;
}

interface Loaded {
  readonly directories: readonly DirectoryConfig[];
  readonly directoryPasswords: Readonly<Record<string, string>>;
}

export function loadDirectories({ single, list, isGiven }: LdapGiven, report: Report): Loaded {
  const paths = Object.values(LDAP).map(({ path }) => path);
  const inMap = paths.filter(isGiven);
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
  const directories: DirectoryConfig[] = [];
  const reports: Told[] = [];
  const passwords: Record<string, string> = {};
  for (const item of items) {
    const directory = directoryOf(item.values, item.given, item.report);
    if (directory === undefined) continue;
    if (directories.some(({ name }) => name === directory.name))
      item.report('name', 'expected a unique name for each directory');
    directories.push(directory);
    reports.push({ directory, report: item.report });
    if (item.values.ldapBindPassword !== undefined) passwords[directory.name] = item.values.ldapBindPassword;
  }
  if (directories.length > 1) checkTogether(reports);
  return { directories, directoryPasswords: passwords };
}

interface Told {
  readonly directory: DirectoryConfig;
  readonly report: (member: string, message: string) => void;
}

/** Which directory gets a password must depend on the name alone, not on what another directory knows or answers. */
function checkTogether(all: readonly Told[]): void {
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

function directoryOf(
  values: LdapValues,
  given: ReadonlySet<string>,
  report: (member: string, message: string) => void,
): DirectoryConfig | undefined {
  if (given.has('bind-dn') !== given.has('bind-password')) {
    const [there, missing] = given.has('bind-dn') ? ['bind-dn', 'bind-password'] : ['bind-password', 'bind-dn'];
    report(missing, `required with ldap.${there}`);
  }
  const ca =
    values.ldapCaFile === undefined ? undefined : readCa(values.ldapCaFile, (message) => report('ca-file', message));
  if (!values.ldapEnabled) return undefined;
  for (const member of ['url', 'base-dn']) {
    if (!given.has(member)) report(member, 'required with ldap.enabled');
  }
  if (
    values.ldapType === 'openldap' &&
    values.ldapMemberOf !== 'trusted' &&
    values.ldapAttributeMapping.groups !== undefined
  ) {
    report('attribute-mapping', 'the groups attribute is read only with ldap.member-of: trusted');
  }
  if (values.ldapStartTls && values.ldapUrl?.some(({ secure }) => secure) === true) {
    report('start-tls', 'expected false with an ldaps:// URL, which already uses TLS');
  }
  return {
    name: values.ldapName,
    type: values.ldapType,
    urls: values.ldapUrl ?? [],
    startTls: values.ldapStartTls,
    ca,
    baseDn: values.ldapBaseDn ?? '',
    userDnPattern: values.ldapUserDnPattern,
    bindDn: values.ldapBindDn,
    userSearchBase: values.ldapUserSearchBase,
    userSearchFilter: values.ldapUserSearchFilter,
    groupSearchBase: values.ldapGroupSearchBase,
    groupSearchFilter: values.ldapGroupSearchFilter,
    nestedGroups: values.ldapNestedGroups,
    memberOf: values.ldapMemberOf,
    attributes: values.ldapAttributeMapping,
    groupRoles: values.ldapGroupRoleMapping,
    tenantId: values.ldapTenantId,
    groupTenants: values.ldapGroupTenantMapping,
    domains: values.ldapDomain ?? [],
    namesWithoutDomain: values.ldapNamesWithoutDomain,
    timeoutMs: values.ldapTimeout,
  };
}

function readCa(file: string, report: (message: string) => void): string | undefined {
  let pem: string;
  try {
    pem = readFileSync(file, 'utf8');
  } catch {
    report(`expected a readable file, got ${file}`);
    return undefined;
  }
  try {
    return new X509Certificate(pem) && pem;
  } catch {
    report(`expected a PEM certificate in ${file}`);
    return undefined;
  }
}

/** What the room of directories is opened with: configuration and secrets together. */
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
