/** Directories for tests of the HTTP API. */

import { openDirectories } from '../../src/directory/directories.ts';
import { DEFAULT_TENANT } from '../../src/domain/ids.ts';
import { createDirectoryService, type DirectoryService } from '../../src/iam/auth/directory-service.ts';

/** A directory named `corp` without a server: nothing listens on port 1 of loopback. */
export function nowhere(): DirectoryService {
  const settings = {
    name: 'corp',
    type: 'openldap',
    urls: [{ text: 'ldap://127.0.0.1:1', secure: false, host: '127.0.0.1', port: 1 }],
    startTls: false,
    ca: undefined,
    baseDn: 'dc=example,dc=com',
    userDnPattern: undefined,
    serviceAccount: undefined,
    userSearchBase: undefined,
    userSearchFilter: undefined,
    groupSearchBase: undefined,
    groupSearchFilter: undefined,
    nestedGroups: false,
    memberOf: 'auto',
    attributes: {},
    groupRoles: new Map(),
    tenantId: DEFAULT_TENANT,
    groupTenants: new Map(),
    domains: [],
    namesWithoutDomain: false,
    timeoutMs: 1000,
  } as const;
  return createDirectoryService({ directories: openDirectories([settings]), names: ['corp'] });
}

/** A directory that accepts every password and reports it as expired. */
export function expired(): DirectoryService {
  return createDirectoryService({
    names: ['corp'],
    directories: {
      authenticate: async () => ({ kind: 'password_expired', reason: 'expired', directory: 'corp' }),
      lookup: async () => ({ kind: 'gone', reason: 'expired' }),
      test: async () => [],
      problems: [],
    },
  });
}
