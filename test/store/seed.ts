/** Rows for the store's tests, made as the schema has them. */

import { createHash } from 'node:crypto';
import {
  type KeyDigest,
  type KeyId,
  makeId,
  parseKeyDigest,
  parseRoleName,
  parseTenantId,
  type RoleName,
  type TenantId,
  type UserId,
} from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database.ts';

let made = 0;

function bytes(): Uint8Array {
  made++;
  return createHash('sha256').update(String(made)).digest();
}

export function digestOf(text: string): KeyDigest {
  const digest = parseKeyDigest(createHash('sha256').update(text).digest('hex'));
  if (digest === undefined) {
    throw new Error('not a digest');
  }
  return digest;
}

export function tenantId(text: string): TenantId {
  const id = parseTenantId(text);
  if (id === undefined) {
    throw new Error('not a tenant id');
  }
  return id;
}

export function roleName(text: string): RoleName {
  const name = parseRoleName(text);
  if (name === undefined) {
    throw new Error('not a role name');
  }
  return name;
}

export async function seedTenant(db: Database, id: string, columns: Record<string, unknown> = {}): Promise<TenantId> {
  await db.knex('tenants').insert({ id, name: id, ...columns });
  return tenantId(id);
}

export async function seedUser(db: Database, tenant: string, columns: Record<string, unknown> = {}): Promise<UserId> {
  const id = makeId('usr', 1_700_000_000_000, bytes());
  await db.knex('users').insert({ id, tenant_id: tenant, name: 'Somebody', ...columns });
  return id;
}

export async function seedKey(
  db: Database,
  tenant: string,
  digest: KeyDigest,
  columns: Record<string, unknown> = {},
): Promise<KeyId> {
  const id = makeId('key', 1_700_000_000_000, bytes());
  await db.knex('api_keys').insert({
    id,
    tenant_id: tenant,
    description: 'a key',
    digest: Buffer.from(digest, 'hex'),
    prefix: 'pk_',
    last_four: 'abcd',
    scopes: ['chat:write'],
    created_by: 'system',
    ...columns,
  });
  return id;
}
