/** What the API shows of a user. */

import type { Metadata } from '../../domain/records.ts';
import type { StoredUser } from './queries.ts';

export interface UserResource {
  readonly id: string;
  readonly email: string | null;
  readonly name: string;
  readonly department: string | null;
  readonly metadata: Metadata;
  readonly roles: readonly string[];
  readonly directory_roles: readonly string[];
  readonly tenant_id: string;
  readonly status: 'active' | 'deactivated';
  readonly source: 'local' | 'ldap';
  /** Of users of a directory. */
  readonly directory_status?: NonNullable<StoredUser['directoryStatus']>;
  /** Of users of a directory. */
  readonly email_conflict?: string | null;
  readonly last_login_at: string | null;
  /** null while failed logins do not lock the account. */
  readonly locked_until: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export function userResource(user: StoredUser): UserResource {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    department: user.department,
    metadata: user.metadata,
    roles: user.roles,
    directory_roles: user.directoryRoles,
    tenant_id: user.tenantId,
    status: user.status,
    source: user.source,
    ...(user.directoryStatus === null
      ? {}
      : { directory_status: user.directoryStatus, email_conflict: user.emailConflict }),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    locked_until: user.lockedUntil?.toISOString() ?? null,
    created_at: user.createdAt.toISOString(),
    updated_at: user.updatedAt.toISOString(),
  };
}
