import type { DirectorySettings } from '../../../src/directory/settings.ts';
import { parseTenantId } from '../../../src/domain/ids.ts';

const tenantId = parseTenantId('default');
if (tenantId === undefined) throw new Error('no tenant');

const PLAIN: DirectorySettings = {
  name: 'ldap',
  type: 'openldap',
  urls: [],
  startTls: false,
  ca: undefined,
  baseDn: 'dc=x',
  userDnPattern: undefined,
  serviceAccount: { dn: 'cn=service,dc=x', password: 'the service account’s' },
  userSearchBase: undefined,
  userSearchFilter: undefined,
  groupSearchBase: undefined,
  groupSearchFilter: undefined,
  nestedGroups: true,
  memberOf: 'auto',
  attributes: {},
  groupRoles: new Map(),
  tenantId,
  groupTenants: new Map(),
  domains: [],
  namesWithoutDomain: false,
  timeoutMs: 1000,
};

export function settingsWith(changes: Partial<DirectorySettings>): DirectorySettings {
  return { ...PLAIN, ...changes };
}

/** @param text `ldap://host:port` */
export function urlOf(text: string): DirectorySettings['urls'][number] {
  const { hostname, port } = new URL(text.replace(/^ldap/, 'http'));
  return { text, secure: text.startsWith('ldaps:'), host: hostname, port: Number(port) };
}
