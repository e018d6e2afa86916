/** The conformance suite's world on PostgreSQL, written by plain statements. */

import { PostgresCacheLoader } from '../../../src/store/cache-loader.ts';
import { readPage } from '../../../src/store/feed-read.ts';
import type { Transaction } from '../../../src/store/transaction.ts';
import { transaction } from '../../../src/store/transaction.ts';
import { freshDatabase } from '../../support/database.ts';
import { type LoadedKind, SESSION_END_MS, type SourceWorld } from '../source-conformance.ts';
import { digest, issuerId, keyId, sessionId, tenantId, userId } from './ids.ts';

const user = userId(1);
const session = sessionId(1);
const tenant = tenantId('home');
const issuer = issuerId(1);
const iss = 'https://cluster.example';
const end = (version: number): Date => new Date(SESSION_END_MS + version);

const WRITES: { readonly [Kind in LoadedKind]: (trx: Transaction, version: number) => Promise<unknown> } = {
  key: (trx, version) => trx.raw('update api_keys set scopes = array[?] where id = ?', [`chat:v${version}`, keyId(1)]),
  user: async (trx, version) => {
    await trx.raw('delete from user_roles where user_id = ?', [user]);
    await trx.raw('insert into user_roles (user_id, role_name) values (?, ?)', [user, `role-${version}`]);
  },
  session: (trx, version) => trx.raw('update sessions set expires_at = ? where id = ?', [end(version), session]),
  tenant: async (trx, version) => {
    await trx.raw('delete from roles where tenant_id = ?', [tenant]);
    await trx.raw(`insert into roles (tenant_id, name, permissions) values (?, ?, '{chat:*}')`, [
      tenant,
      `role-${version}`,
    ]);
  },
  global: async (trx, version) => {
    await trx.raw('delete from policies where tenant_id is null');
    await trx.raw(
      `insert into policies (name, effect, actions, resources, applies_to) values (?, 'deny', '{*}', '{*}', 'everyone')`,
      [`policy-${version}`],
    );
  },
  issuer: (trx, version) => trx.raw('update issuers set audiences = array[?] where id = ?', [`v${version}`, issuer]),
  link: (trx, version) => trx.raw('update api_keys set expires_at = ? where id = ?', [end(version), keyId(2)]),
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
  await db.knex('issuers').insert({
    id: issuer,
    tenant_id: tenant,
    name: 'cluster',
    kind: 'oidc',
    issuer: iss,
    audiences: ['v0'],
    algorithms: ['RS256'],
  });
  await db.knex('api_keys').insert({
    id: keyId(2),
    tenant_id: tenant,
    description: 'a key without a secret',
    digest: Buffer.from(digest(2), 'hex'),
    prefix: '',
    last_four: '',
    scopes: ['chat:v0'],
    created_by: 'test',
    expires_at: end(0),
    proof_issuer_id: issuer,
    proof_subject: 'pod',
    proof_claims: '[]',
  });
  const write = async (kind: LoadedKind, version: number): Promise<void> => {
    await transaction(db, async (trx) => {
      await WRITES[kind](trx, version);
    });
  };
  for (const kind of ['user', 'tenant', 'global'] as const) await write(kind, 0);
  return {
    source: new PostgresCacheLoader(db),
    digest: digest(1),
    user,
    session,
    tenant,
    issuer,
    iss,
    subject: 'pod',
    write,
    changes: async (after) => (await readPage(db, { after, limit: 1000, withTimeline: false })).changes,
    close,
  };
}
