/**
 * Resolves a credential in the obvious way: reads everything out of one state, in order, without a cache and without
 * concurrency.
 */

import type { Resolution } from '../../../src/credential-cache/credential-cache.ts';
import type { CredentialForm } from '../../../src/domain/credential.ts';
import type { KeyRecord, SessionRecord, TenantRecord, UserRecord } from '../../../src/domain/records.ts';
import type { State } from './model-store.ts';
import { ADMIN_SESSION, ADMINISTRATOR, DEVELOPER, developersToken, NOW, SESSION } from './world.ts';

/** The rows that a credential of the small world leads to, each as some state shows it. */
export interface Rows {
  readonly key: KeyRecord | undefined;
  readonly session: SessionRecord | undefined;
  readonly user: UserRecord | undefined;
  readonly tenant: TenantRecord | undefined;
  readonly global: string;
}

/** Where each row is read, so that rows of several states can be combined. */
export function readers(credential: CredentialForm): { readonly [Name in keyof Rows]: (state: State) => Rows[Name] } {
  const token = credential.kind === 'token';
  const users = credential === developersToken || !token ? DEVELOPER : ADMINISTRATOR;
  const sessions = credential === developersToken ? SESSION : ADMIN_SESSION;
  return {
    key: (state) => (credential.kind === 'api_key' ? state.keys.get(credential.digest) : undefined),
    session: (state) => (token ? state.sessions.get(sessions) : undefined),
    user: (state) => state.users.get(users),
    tenant: (state) => state.tenants.get('home'),
    global: (state) => state.globals.map((policy) => policy.name).join(),
  };
}

export function naive(credential: CredentialForm, { key, session, user, tenant, global }: Rows): string {
  if (credential.kind === 'api_key') {
    if (key === undefined) return 'unknown';
    if (key.revoked) return 'revoked';
    if (key.disabled) return 'disabled';
    if (key.userId !== undefined && user === undefined) return 'user_missing';
    if (key.userId !== undefined && user?.status !== 'active') return 'user_deactivated';
  } else {
    if (session === undefined || session.ended || NOW >= session.expiresAtMs) return 'session_ended';
    if (user === undefined) return 'user_missing';
    if (user.status !== 'active') return 'user_deactivated';
  }
  if (tenant === undefined) return 'unknown';
  const roles = credential.kind === 'api_key' && key?.userId === undefined ? undefined : user?.roles;
  return JSON.stringify([key?.scopes, roles, tenant.settings.default_model, global]);
}

/** A resolution in the same words. */
export function inWords({ identity, snapshot }: Resolution): string {
  if (identity.kind === 'invalid') return identity.reason;
  if (identity.kind !== 'proved' || snapshot === undefined) return identity.kind;
  const { principal } = identity;
  const isKey = principal.kind === 'api_key';
  return JSON.stringify([
    isKey ? principal.grant.patterns : undefined,
    isKey ? principal.owner?.roles : principal.roles,
    snapshot.own?.settings.default_model,
    snapshot.global.denies.policies.map((policy) => policy.name).join(),
  ]);
}
