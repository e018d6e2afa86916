/** What a credential proves, told to whoever holds it. */

import type { Principal, Snapshot } from '../../decision/model.ts';
import type { KeyId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import { findKey } from '../api-keys/queries.ts';
import type { Caller } from '../caller/caller.ts';
import { findUser } from '../users/queries.ts';
import { type AuthParts, invalidCredential } from './parts.ts';

export interface Me {
  readonly id: UserId | KeyId;
  readonly type: 'user' | 'api_key';
  /** Null for keys, and for users of a directory that have none. */
  readonly email: string | null;
  /** A key's is its description. */
  readonly name: string;
  readonly tenantId: TenantId;
  /** Who keeps the user's password: Postern, or a directory. Null for keys. */
  readonly source: 'local' | 'ldap' | null;
  /** A key's are its owner's. */
  readonly roles: readonly RoleName[];
  /** The patterns that the roles give, sorted; a key's are its scopes. Policies and constraints may still narrow or widen them. */
  readonly permissions: readonly string[];
  readonly platformAdmin: boolean;
}

/** @throws Refusal `invalid_credential` when the principal was deleted since it was let in */
export async function me(parts: Pick<AuthParts, 'db'>, caller: Caller): Promise<Me> {
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
  readonly source: Me['source'];
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
