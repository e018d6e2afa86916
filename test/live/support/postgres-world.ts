/** The conformance suite's world on PostgreSQL, written by plain statements. */

import type { Knex } from 'knex';
import { transaction } from '../../../src/store/database.ts';
import { readPage } from '../../../src/store/feed-read.ts';
import { PostgresLiveSource } from '../../../src/store/live-source.ts';
import { freshDatabase } from '../../support/database.ts';
import { type LoadedKind, SESSION_END_MS, type SourceWorld } from '../source-conformance.ts';
import { digest, keyId, sessionId, tenantId, userId } from './ids.ts';

const user = userId(1);
const session = sessionId(1);
const tenant = tenantId('home');
const end = (version: number): Date => new Date(SESSION_END_MS + version);

const WRITES: { readonly [Kind in LoadedKind]: (trx: Knex.Transaction, version: number) => Promise<unknown> } = {
  key: (trx, version) =>
    trx('api_keys')
      .where({ id: keyId(1) })
      .update({ scopes: [`chat:v${version}`] }),
  user: async (trx, version) => {
    await trx('user_roles').where({ user_id: user }).delete();
    await trx('user_roles').insert({ user_id: user, role_name: `role-${version}` });
  },
  session: (trx, version) =>
    trx('sessions')
      .where({ id: session })
      .update({ expires_at: end(version) }),
  tenant: async (trx, version) => {
    await trx('roles').where({ tenant_id: tenant }).delete();
    await trx('roles').insert({ tenant_id: tenant, name: `role-${version}`, permissions: ['chat:*'] });
  },
  global: async (trx, version) => {
    await trx('policies').whereNull('tenant_id').delete();
    await trx('policies').insert({
      name: `policy-${version}`,
      effect: 'deny',
      actions: ['*'],
      resources: ['*'],
      applies_to: 'everyone',
    });
  },
};

export async function postgresWorld(): Promise<SourceWorld> {
  const { db, close } = await freshDatabase();
  await db.knex('tenants').insert({ id: tenant, name: 'Home' });
  await db.knex('users').insert({ id: user, tenant_id: tenant, name: 'Somebody' });
  await db.knex('sessions').insert({ id: session, user_id: user, expires_at: end(0) });
  await db.knex('api_keys').insert({
    id: keyId(1),
    tenant_id: tenant,
    description: 'a key',
    digest: Buffer.from(digest(1), 'hex'),
    prefix: 'psk_0000',
    last_four: '0000',
    scopes: ['chat:v0'],
    created_by: 'test',
  });
  const write = async (kind: LoadedKind, version: number): Promise<void> => {
    await transaction(db, async (trx) => {
      await WRITES[kind](trx, version);
    });
  };
  for (const kind of ['user', 'tenant', 'global'] as const) await write(kind, 0);
  return {
    source: new PostgresLiveSource(db),
    digest: digest(1),
    user,
    session,
    tenant,
    write,
    changes: async (after) => (await readPage(db, { after, limit: 1000, withTimeline: false })).changes,
    close,
  };
}
