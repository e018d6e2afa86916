/** The caller's own principal and permissions. */

import type { Static } from 'typebox';
import type { Principal, Snapshot } from '../../decision/model.ts';
import type { RoleName } from '../../domain/ids.ts';
import { findKey } from '../api-keys/queries.ts';
import { invalidCredential } from '../caller/admission.ts';
import type { Caller } from '../caller/caller.ts';
import { findUser } from '../users/queries.ts';
import type { AuthParts } from './parts.ts';
import type { Me } from './response-schemas.ts';

type OwnIdentity = Static<typeof Me>;

/** @throws Refusal `invalid_credential` if the principal was deleted after it was admitted */
export async function me(parts: Pick<AuthParts, 'db'>, caller: Caller): Promise<OwnIdentity> {
  const { principal, snapshot } = caller;
  const roles = snapshot.own === undefined ? [] : snapshot.builtinRoles.existingRoles(principal, snapshot.own);
  return {
    id: principal.id,
    type: principal.kind,
    ...(await profile(parts, principal)),
    tenant_id: principal.tenantId,
    roles: [...roles],
    permissions: principal.kind === 'user' ? permissionsOf(roles, snapshot) : [...principal.grant.patterns],
    platform_admin: principal.kind === 'user' && principal.platformAdmin,
  };
}

/** The name of a key is its description. */
async function profile(
  parts: Pick<AuthParts, 'db'>,
  principal: Principal,
): Promise<Pick<OwnIdentity, 'email' | 'name' | 'source'>> {
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

function permissionsOf(roles: readonly RoleName[], { own, builtinRoles }: Snapshot): string[] {
  const patterns = roles.flatMap((role) => (own && builtinRoles.grantOf(role, own)?.patterns) ?? []);
  return [...new Set(patterns)].sort((a, b) => (a < b ? -1 : 1));
}
