/**
 * How each kind of directory is configured in tests: as its administrators would, by the servers' own defaults where
 * there are any.
 */

import { readFileSync } from 'node:fs';
import { normaliseDn } from '../../src/directory/dn.ts';
import type { DirectorySettings, DirectoryUrl } from '../../src/directory/settings.ts';
import { parseRoleName, parseTenantId } from '../../src/domain/ids.ts';
import { groupDn } from './servers/people.ts';
import type { DirectoryKind, DirectoryPlace } from './servers/server.ts';

/** The role that each group gives. The groups of the same name elsewhere give none. */
export const GROUP_ROLES: Readonly<Record<string, string>> = {
  engineers: 'developer',
  staff: 'analyst',
  'all-hands': 'auditor',
  admins: 'admin',
  operators: 'operator',
  everyone: 'crowd',
  'ring-b': 'ring',
  'R, D (core)': 'core',
  reviewers: 'reviewer',
  printers: 'printer',
};

const KIND_SETTINGS: Readonly<Record<DirectoryKind, (server: DirectoryPlace) => Partial<DirectorySettings>>> = {
  'active-directory': (server) => ({ domains: ['corp', 'corp.example'], groupSearchBase: server.groups }),
  openldap: (server) => ({
    groupSearchBase: server.groups,
    groupSearchFilter: '(|(member={0})(uniqueMember={0})(memberUid={1}))',
  }),
  freeipa: () => ({ type: 'freeipa' }),
  '389ds': (server) => ({
    groupSearchBase: server.groups,
    groupSearchFilter: '(|(member={0})(uniqueMember={0})(memberUid={1}))',
  }),
};

export function settingsFor(server: DirectoryPlace, changes: Partial<DirectorySettings> = {}): DirectorySettings {
  const secure = new URL(server.secureUrl);
  return {
    name: server.kind,
    type: 'auto',
    urls: [directoryUrl(secure.href)],
    startTls: false,
    ca: readFileSync(server.caFile, 'utf8'),
    baseDn: server.suffix,
    userDnPattern: undefined,
    serviceAccount: server.service,
    userSearchBase: undefined,
    userSearchFilter: undefined,
    groupSearchBase: undefined,
    groupSearchFilter: undefined,
    nestedGroups: true,
    memberOf: 'auto',
    attributes: {},
    groupRoles: new Map(
      Object.entries(GROUP_ROLES).map(([cn, role]) => [
        known(normaliseDn(groupDn(server, cn))),
        [known(parseRoleName(role))],
      ]),
    ),
    tenantId: known(parseTenantId('default')),
    groupTenants: new Map(),
    domains: [],
    namesWithoutDomain: false,
    timeoutMs: 30_000,
    ...KIND_SETTINGS[server.kind](server),
    ...changes,
  };
}

/** @param text `ldap://host:port` or `ldaps://host:port` */
export function directoryUrl(text: string): DirectoryUrl {
  const url = new URL(text);
  const secure = url.protocol === 'ldaps:';
  const port = url.port === '' ? (secure ? 636 : 389) : Number(url.port);
  return { text, secure, host: url.hostname, port };
}

export function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a test names something that cannot be');
  return value;
}
