/** The caller's own principal and permissions. */

import type { Principal, Snapshot } from '../../decision/model.ts';
import type { KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { findKey } from '../api-keys/queries.ts';
import { invalidCredential } from '../caller/admission.ts';
import type { Caller } from '../caller/caller.ts';
import { findUser } from '../users/queries.ts';
import type { AuthParts } from './parts.ts';

export interface OwnIdentity {
  readonly id: UserId | KeyId;
  readonly type: 'user' | 'api_key';
  /** Null for keys, and for users of a directory without an address. */
  readonly email: string | null;
  /** For a key: its description. */
  readonly name: string;
  readonly tenantId: TenantId;
  /** The owner of the user's password: Postern or a directory. Null for keys. */
  readonly source: 'local' | 'ldap' | null;
  /** For a key: its owner's roles. */
  readonly roles: readonly RoleName[];
  /**
   * The permission patterns of the roles, sorted. For a key: its scopes. Policies and constraints may narrow or widen
   * them.
   */
  readonly permissions: readonly string[];
  readonly platformAdmin: boolean;
}

/** @throws Refusal `invalid_credential` if the principal was deleted after it was admitted */
export async function me(parts: Pick<AuthParts, 'db'>, caller: Caller): Promise<OwnIdentity> {
  const { principal } = caller;
  const { email, name, source } = await profile(parts, principal);
  const { own, builtinRoles } = caller.snapshot;
  const roles = own === undefined ? [] : builtinRoles.existingRoles(principal, own);
  switch (principal.kind) {
    case 'user':
      return {
        id: principal.id,
        type: 'user',
        email,
        name,
        tenantId: principal.tenantId,
        source,
        roles,
        permissions: permissionsOf(roles, caller.snapshot),
        platformAdmin: principal.platformAdmin,
      };
    case 'api_key':
      return {
        id: principal.id,
        type: 'api_key',
        email,
        name,
        tenantId: principal.tenantId,
        source,
        roles,
        permissions: principal.grant.patterns,
        platformAdmin: false,
      };
    default:
      return principal satisfies never;
  }
}

interface Profile {
  readonly email: string | null;
  readonly name: string;
  readonly source: OwnIdentity['source'];
}

async function profile(parts: Pick<AuthParts, 'db'>, principal: Principal): Promise<Profile> {
  const { knex } = parts.db;
  if (principal.kind === 'user') {
    const user = await findUser(knex, principal.tenantId, principal.id);
    if (user === undefined) throw invalidCredential();
    return { email: user.email, name: user.name, source: user.source };
  }
  const key = await findKey(knex, principal.tenantId, principal.id);
  if (key === undefined) throw invalidCredential();
  return { email: null, name: key.description, source: null };
}

function permissionsOf(roles: readonly RoleName[], { own, builtinRoles }: Snapshot): readonly string[] {
  const patterns = roles.flatMap((role) => (own && builtinRoles.grantOf(role, own)?.patterns) ?? []);
  return [...new Set(patterns)].sort((a, b) => (a < b ? -1 : 1));
}
