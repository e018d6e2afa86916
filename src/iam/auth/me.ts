/** The caller's own principal and permissions. */

import type { Static } from 'typebox';
import type { Principal, Snapshot } from '../../decision/model.ts';
import { narrowedPatterns } from '../../decision/narrowing.ts';
import { findKey } from '../api-keys/queries.ts';
import { ownBudgets } from '../budgets/own.ts';
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
    permissions: [...permissionPatterns(principal, snapshot)],
    platform_admin: principal.kind === 'user' && principal.platformAdmin,
    budgets: await ownBudgets(parts.db.knex, caller),
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

/** Returns the permission patterns of the user's roles, or of the key's scopes, within the scope of the session. */
export function permissionPatterns(principal: Principal, { own, builtinRoles }: Snapshot): readonly string[] {
  const { scope } = principal;
  if (principal.kind === 'api_key')
    return scope === undefined ? principal.grant.patterns : narrowedPatterns(principal.grant.patterns, scope);
  const patterns = principal.roles.flatMap((role) => (own && builtinRoles.grantOf(role, own)?.patterns) ?? []);
  return narrowedPatterns(patterns, scope);
}
