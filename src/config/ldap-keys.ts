/** The settings of one directory, as `ldap.*` or as a member of each map when `ldap` is a list. */

import { FILE_PATH, optional, secret, setting } from './key.ts';
import {
  attributeMapping,
  bindName,
  directoryDomains,
  directoryTimeout,
  directoryUrls,
  dnText,
  filterTemplate,
  groupRoles,
  groupTenants,
  tenantId,
  userDnPattern,
} from './ldap-parsers.ts';
import { flag, oneOf, textLike } from './parsers.ts';

const NAME = textLike('a name of lower-case letters, digits and hyphens', /^[a-z0-9][a-z0-9-]{0,62}$/);

export const LDAP = {
  ldapEnabled: setting('ldap.enabled', flag, 'false', 'Whether people of the directory may log in.'),
  ldapName: setting('ldap.name', NAME, 'ldap', 'What users, audit and metrics call the directory; it never changes.'),
  ldapType: setting(
    'ldap.type',
    oneOf('auto', 'active-directory', 'openldap', 'freeipa', '389ds'),
    'auto',
    'What kind of directory it is; auto = as the server says.',
  ),
  ldapUrl: optional('ldap.url', directoryUrls, 'Its servers, tried in order.'),
  ldapStartTls: setting('ldap.start-tls', flag, 'false', 'Begin TLS on an ldap:// connection before anything else.'),
  ldapCaFile: optional('ldap.ca-file', FILE_PATH, "CA of the servers' certificates, PEM; absent = those of the system."),
  ldapTimeout: setting('ldap.timeout', directoryTimeout, '5s', 'For a whole login.'),
  ldapBaseDn: optional('ldap.base-dn', dnText, 'Where the directory begins.'),
  ldapUserDnPattern: optional('ldap.user-dn-pattern', userDnPattern, 'What people bind as; absent = they are searched for.'),
  ldapBindDn: optional('ldap.bind-dn', bindName, 'The service account that searches.'),
  ldapBindPassword: secret('ldap.bind-password', textLike('a password', /^[^\0]{1,1024}$/su), 'Its password.'),
  ldapUserSearchBase: optional('ldap.user-search-base', dnText, 'Where people are searched for; absent = ldap.base-dn.'),
  ldapUserSearchFilter: optional(
    'ldap.user-search-filter',
    filterTemplate('(uid={0})'),
    'How: {0} is the name without the domain, {1} as it was typed; absent = by the type of the directory.',
  ),
  ldapGroupSearchBase: optional('ldap.group-search-base', dnText, 'Where groups are searched for; absent = ldap.base-dn.'),
  ldapGroupSearchFilter: optional(
    'ldap.group-search-filter',
    filterTemplate('(member={0})'),
    "How: {0} is the person's DN, {1} the person's name; absent = by the usual attributes, or with no ldap.group-search-base the person's entry alone.",
  ),
  ldapNestedGroups: setting('ldap.nested-groups', flag, 'true', 'Whether groups in groups count.'),
  ldapMemberOf: setting(
    'ldap.member-of',
    oneOf('auto', 'trusted', 'searched'),
    'auto',
    "How a person's groups are known: trusted = as memberOf of the person's entry says; searched = only groups that list the person; auto = searched for openldap, trusted for the others.",
  ),
  ldapAttributeMapping: setting(
    'ldap.attribute-mapping',
    attributeMapping,
    '{}',
    'Attributes for username, email, display-name and groups, where they are not the usual ones.',
  ),
  ldapGroupRoleMapping: setting('ldap.group-role-mapping', groupRoles, '{}', 'Group DN -> role or list of roles.'),
  ldapTenantId: setting('ldap.tenant-id', tenantId, 'default', 'The tenant of its people.'),
  ldapGroupTenantMapping: setting(
    'ldap.group-tenant-mapping',
    groupTenants,
    '{}',
    'Group DN -> tenant; the first that fits decides.',
  ),
  ldapDomain: optional(
    'ldap.domain',
    directoryDomains,
    'Names with one of these domains are looked up only here, without it; required when several directories are configured.',
  ),
  ldapNamesWithoutDomain: setting(
    'ldap.names-without-domain',
    flag,
    'false',
    'With several directories: whether names without a configured domain are looked up here.',
  ),
} as const;

/** `ldap.base-dn` -> `base-dn` */
export function memberName(path: string): string {
  return path.slice('ldap.'.length);
}
