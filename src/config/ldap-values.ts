/** The values of one directory's settings, each read by itself. */

import type { Key } from './key.ts';
import { LDAP } from './ldap-keys.ts';

type ValueOf<K> = K extends Key<infer T> ? T : never;

export type LdapValues = { readonly [Name in keyof typeof LDAP]: ValueOf<(typeof LDAP)[Name]> };

export function takeLdap(take: <T>(key: Key<T>) => T): LdapValues {
  return {
    ldapEnabled: take(LDAP.ldapEnabled),
    ldapName: take(LDAP.ldapName),
    ldapType: take(LDAP.ldapType),
    ldapUrl: take(LDAP.ldapUrl),
    ldapStartTls: take(LDAP.ldapStartTls),
    ldapCaFile: take(LDAP.ldapCaFile),
    ldapTimeout: take(LDAP.ldapTimeout),
    ldapBaseDn: take(LDAP.ldapBaseDn),
    ldapUserDnPattern: take(LDAP.ldapUserDnPattern),
    ldapBindDn: take(LDAP.ldapBindDn),
    ldapBindPassword: take(LDAP.ldapBindPassword),
    ldapUserSearchBase: take(LDAP.ldapUserSearchBase),
    ldapUserSearchFilter: take(LDAP.ldapUserSearchFilter),
    ldapGroupSearchBase: take(LDAP.ldapGroupSearchBase),
    ldapGroupSearchFilter: take(LDAP.ldapGroupSearchFilter),
    ldapNestedGroups: take(LDAP.ldapNestedGroups),
    ldapMemberOf: take(LDAP.ldapMemberOf),
    ldapAttributeMapping: take(LDAP.ldapAttributeMapping),
    ldapGroupRoleMapping: take(LDAP.ldapGroupRoleMapping),
    ldapTenantId: take(LDAP.ldapTenantId),
    ldapGroupTenantMapping: take(LDAP.ldapGroupTenantMapping),
    ldapDomain: take(LDAP.ldapDomain),
    ldapNamesWithoutDomain: take(LDAP.ldapNamesWithoutDomain),
  };
}
