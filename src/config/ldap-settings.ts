/** The settings of one directory, as `ldap.*` or as a member of each map when `ldap` is a list. */

import {
  attributeMapping,
  bindName,
  directoryDomains,
  directoryUrls,
  dnText,
  filterTemplate,
  groupRoles,
  groupTenants,
  TENANT_ID,
  userDnPattern,
} from './ldap-parsers.ts';
import { choice, directoryTimeout, FILE_PATH, flag, textLike } from './parsers.ts';
import { optional, secret, setting, type ValuesOf } from './setting.ts';

const NAME = textLike('a name of lower-case letters, digits and hyphens', /^[a-z0-9][a-z0-9-]{0,62}$/);

export const LDAP_SETTINGS = {
  enabled: setting('ldap.enabled', flag, 'false', 'Whether users of the directory may log in.'),
  name: setting('ldap.name', NAME, 'ldap', 'Name of the directory in users, audit and metrics. It must never change.'),
  type: setting(
    'ldap.type',
    choice('auto', 'active-directory', 'openldap', 'freeipa', '389ds'),
    'auto',
    'Type of the directory; auto = detected from the server.',
  ),
  urls: optional('ldap.url', directoryUrls, 'ldaps://ldap.example.com', 'Servers of the directory, tried in order.'),
  startTls: setting(
    'ldap.start-tls',
    flag,
    'false',
    'Whether an ldap:// connection starts TLS before it sends anything else.',
  ),
  caFile: optional(
    'ldap.ca-file',
    FILE_PATH,
    '/etc/postern/ldap-ca.pem',
    "CA of the servers' certificates, PEM; absent = the CAs of the system.",
  ),
  timeoutMs: setting('ldap.timeout', directoryTimeout, '5s', 'Timeout of a whole login.'),
  baseDn: optional('ldap.base-dn', dnText, 'dc=example,dc=com', 'DN at which searches start by default.'),
  userDnPattern: optional(
    'ldap.user-dn-pattern',
    userDnPattern,
    'uid={0},ou=people,dc=example,dc=com',
    'DN or name with which users bind; absent = users are searched for.',
  ),
  bindDn: optional(
    'ldap.bind-dn',
    bindName,
    'cn=postern,ou=services,dc=example,dc=com',
    'Service account that searches.',
  ),
  bindPassword: secret(
    'ldap.bind-password',
    textLike('a password', /^[^\0]{1,1024}$/su),
    'the password of the service account',
    'Password of the service account.',
  ),
  userSearchBase: optional(
    'ldap.user-search-base',
    dnText,
    'ou=people,dc=example,dc=com',
    'DN under which users are searched for; absent = ldap.base-dn.',
  ),
  userSearchFilter: optional(
    'ldap.user-search-filter',
    filterTemplate('(uid={0})'),
    '(uid={0})',
    'Filter of the user search: {0} is the username without the domain, {1} is the username as typed; absent = depends on the type of the directory.',
  ),
  groupSearchBase: optional(
    'ldap.group-search-base',
    dnText,
    'ou=groups,dc=example,dc=com',
    'DN under which groups are searched for; absent = ldap.base-dn.',
  ),
  groupSearchFilter: optional(
    'ldap.group-search-filter',
    filterTemplate('(member={0})'),
    '(member={0})',
    "Filter of the group search: {0} is the user's DN, {1} is the username; absent = the usual attributes, or only the user's entry if ldap.group-search-base is not set.",
  ),
  nestedGroups: setting('ldap.nested-groups', flag, 'true', 'Whether nested groups count.'),
  memberOf: setting(
    'ldap.member-of',
    choice('auto', 'trusted', 'searched'),
    'auto',
    "Source of a user's groups: trusted = memberOf of the user's entry; searched = only groups that list the user; auto = searched for openldap, trusted for all other types.",
  ),
  attributes: setting(
    'ldap.attribute-mapping',
    attributeMapping,
    '{}',
    'Attributes for username, email, display-name and groups, if they differ from the usual ones.',
    { example: '{"email":"mail"}' },
  ),
  groupRoles: setting('ldap.group-role-mapping', groupRoles, '{}', 'Group DN -> role or list of roles.', {
    example: '{"cn=engineers,ou=groups,dc=example,dc=com":"developer"}',
  }),
  tenantId: setting('ldap.tenant-id', TENANT_ID, 'default', "Tenant of the directory's users."),
  groupTenants: setting(
    'ldap.group-tenant-mapping',
    groupTenants,
    '{}',
    'Group DN -> tenant; the first match decides.',
    { example: '{"cn=acme,ou=groups,dc=example,dc=com":"acme"}' },
  ),
  domains: optional(
    'ldap.domain',
    directoryDomains,
    '["example.com","EXAMPLE"]',
    'Usernames with one of these domains are looked up only in this directory, without the domain; required with several directories.',
  ),
  namesWithoutDomain: setting(
    'ldap.names-without-domain',
    flag,
    'false',
    'With several directories: whether names without a configured domain are looked up here.',
  ),
} as const;

export type LdapValues = ValuesOf<typeof LDAP_SETTINGS>;

/** `ldap.base-dn` -> `base-dn` */
export function memberName(path: string): string {
  return path.slice('ldap.'.length);
}
