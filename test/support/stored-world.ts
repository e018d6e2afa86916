/** The world of the cases, put into a real database: with real keys, and sessions for real tokens. */

import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import type { SessionId, TenantId, UserId } from '../../src/domain/ids.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import type { CaseWorld } from './world.ts';

export interface StoredSubject {
  readonly userId: UserId;
  readonly sessionId: SessionId;
  readonly tenantId: TenantId;
}

export interface StoredWorld {
  /** Key texts by label. */
  readonly keys: ReadonlyMap<string, string>;
  /** The subject of the token of each user, by label. */
  readonly users: ReadonlyMap<string, StoredSubject>;
}

const numbered = (prefix: string, index: number): string => `${prefix}_${String(index).padStart(26, '0')}`;

/** @param endsAt when keys without an expiry and all sessions end; after every time in the cases */
export async function storeWorld(knex: Knex, world: CaseWorld, endsAt: Date): Promise<StoredWorld> {
  const users = new Map<string, StoredSubject>();
  for (const { id, name, status = 'active', settings = {}, quotas = {} } of world.tenants) {
    await knex('tenants')
      .insert({ id, name, status, settings: JSON.stringify(settings), quotas: JSON.stringify(quotas) })
      .onConflict('id')
      .merge();
  }
  for (const { tenant_id, name, permissions, resource_constraints = {} } of world.roles) {
    await knex('roles').insert({
      tenant_id,
      name,
      permissions,
      resource_constraints: JSON.stringify(resource_constraints),
    });
  }
  for (const { attached_roles: attached = [], conditions, ...policy } of world.policies) {
    const appliesTo = attached.length > 0 || policy.effect === 'allow' ? 'roles' : 'everyone';
    const rows = await knex('policies')
      .insert({ ...policy, conditions: JSON.stringify(conditions), applies_to: appliesTo })
      .returning('id');
    for (const role_name of attached) await knex('policy_roles').insert({ policy_id: rows[0].id, role_name });
  }
  for (const [index, { id, tenant_id, roles, status = 'active' }] of world.users.entries()) {
    const userId = numbered('usr', index) as UserId;
    const sessionId = numbered('ses', index) as SessionId;
    users.set(id, { userId, sessionId, tenantId: tenant_id as TenantId });
    await knex('users').insert({ id: userId, tenant_id, email: `${id}@example.com`, name: id, status });
    for (const role_name of roles) await knex('user_roles').insert({ user_id: userId, role_name });
    await knex('sessions').insert({ id: sessionId, user_id: userId, expires_at: endsAt });
  }
  const ids = new Map([...users].map(([label, { userId }]) => [label, userId]));
  return { keys: await storeKeys(knex, world, ids, endsAt), users };
}

/**
 * The keys alone, for a database that has the rest already; each is described by its label.
 * @param users ids by label
 * @returns key texts by label
 */
export async function storeKeys(
  knex: Knex,
  world: CaseWorld,
  users: ReadonlyMap<string, UserId>,
  endsAt: Date,
): Promise<ReadonlyMap<string, string>> {
  const keys = new Map<string, string>();
  for (const [
    index,
    { id, tenant_id, user_id, scopes, resource_constraints = {}, ...key },
  ] of world.api_keys.entries()) {
    const { text, prefix, lastFour } = makeApiKey();
    keys.set(id, text);
    await knex('api_keys').insert({
      id: numbered('key', index),
      tenant_id,
      user_id: user_id === undefined ? null : users.get(user_id),
      description: id,
      digest: createHash('sha256').update(text).digest(),
      prefix,
      last_four: lastFour,
      scopes,
      resource_constraints: JSON.stringify(resource_constraints),
      expires_at: key.expires_at ?? endsAt,
      revoked_at: key.revoked === true ? new Date(0) : null,
      created_by: 'test',
    });
  }
  return keys;
}
