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
  ldapEnabled: setting('ldap.enabled', flag, 'false', 'Whether users of the directory may log in.'),
  ldapName: setting(
    'ldap.name',
    NAME,
    'ldap',
    'Name of the directory in users, audit and metrics. It must never change.',
  ),
  ldapType: setting(
    'ldap.type',
    oneOf('auto', 'active-directory', 'openldap', 'freeipa', '389ds'),
    'auto',
    'Type of the directory; auto = detected from the server.',
  ),
  ldapUrl: optional('ldap.url', directoryUrls, 'Servers of the directory, tried in order.'),
  ldapStartTls: setting(
    'ldap.start-tls',
    flag,
    'false',
    'Whether an ldap:// connection starts TLS before it sends anything else.',
  ),
  ldapCaFile: optional(
    'ldap.ca-file',
    FILE_PATH,
    "CA of the servers' certificates, PEM; absent = the CAs of the system.",
  ),
  ldapTimeout: setting('ldap.timeout', directoryTimeout, '5s', 'Timeout of a whole login.'),
  ldapBaseDn: optional('ldap.base-dn', dnText, 'DN at which searches start by default.'),
  ldapUserDnPattern: optional(
    'ldap.user-dn-pattern',
    userDnPattern,
    'DN or name with which users bind; absent = users are searched for.',
  ),
  ldapBindDn: optional('ldap.bind-dn', bindName, 'Service account that searches.'),
  ldapBindPassword: secret(
    'ldap.bind-password',
    textLike('a password', /^[^\0]{1,1024}$/su),
    'Password of the service account.',
  ),
  ldapUserSearchBase: optional(
    'ldap.user-search-base',
    dnText,
    'DN under which users are searched for; absent = ldap.base-dn.',
  ),
  ldapUserSearchFilter: optional(
    'ldap.user-search-filter',
    filterTemplate('(uid={0})'),
    'Filter of the user search: {0} is the username without the domain, {1} is the username as typed; absent = depends on the type of the directory.',
  ),
  ldapGroupSearchBase: optional(
    'ldap.group-search-base',
    dnText,
    'DN under which groups are searched for; absent = ldap.base-dn.',
  ),
  ldapGroupSearchFilter: optional(
    'ldap.group-search-filter',
    filterTemplate('(member={0})'),
    "Filter of the group search: {0} is the user's DN, {1} is the username; absent = the usual attributes, or only the user's entry if ldap.group-search-base is not set.",
  ),
  ldapNestedGroups: setting('ldap.nested-groups', flag, 'true', 'Whether nested groups count.'),
  ldapMemberOf: setting(
    'ldap.member-of',
    oneOf('auto', 'trusted', 'searched'),
    'auto',
    "Source of a user's groups: trusted = memberOf of the user's entry; searched = only groups that list the user; auto = searched for openldap, trusted for all other types.",
  ),
  ldapAttributeMapping: setting(
    'ldap.attribute-mapping',
    attributeMapping,
    '{}',
    'Attributes for username, email, display-name and groups, if they differ from the usual ones.',
  ),
  ldapGroupRoleMapping: setting('ldap.group-role-mapping', groupRoles, '{}', 'Group DN -> role or list of roles.'),
  ldapTenantId: setting('ldap.tenant-id', tenantId, 'default', "Tenant of the directory's users."),
  ldapGroupTenantMapping: setting(
    'ldap.group-tenant-mapping',
    groupTenants,
    '{}',
    'Group DN -> tenant; the first match decides.',
  ),
  ldapDomain: optional(
    'ldap.domain',
    directoryDomains,
    'Usernames with one of these domains are looked up only in this directory, without the domain; required with several directories.',
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
