/**
 * One caller with everything that a request can be about, in tenants of its own, so that many cases run beside each
 * other.
 */

import { randomBytes } from 'node:crypto';
import {
  type BudgetId,
  type DeliveryId,
  type IssuerId,
  type KeyId,
  makeId,
  parseTenantId,
  type SessionId,
  type TenantId,
  type UserId,
  type WebhookId,
} from '../../../src/domain/ids.ts';
import { makeApiKey } from '../../../src/identity/api-keys.ts';
import { Passwords } from '../../../src/identity/passwords.ts';
import type { Queryable } from '../../../src/store/queryable.ts';
import type { Harness } from '../harness.ts';

export const PASSWORD = 'a lake of tin whistles';

export interface Case {
  readonly caller: 'key' | 'session';
  /** The caller's key or access token. */
  readonly credential: string;
  /** Under which the credential is looked up. */
  readonly lookedUpAs: string;
  readonly userId: UserId;
  readonly sessionId: SessionId;
  readonly keyId: KeyId;
  readonly own: TenantId;
  /** Another tenant, empty. */
  readonly other: TenantId;
  /** A tenant that does not exist yet. */
  readonly fresh: TenantId;
  readonly number: number;
  /** The targets of requests, all in the caller's tenant. */
  readonly target: {
    readonly user: UserId;
    readonly role: string;
    readonly policy: string;
    readonly key: KeyId;
    readonly issuer: IssuerId;
    readonly webhook: WebhookId;
    readonly delivery: DeliveryId;
    readonly budget: BudgetId;
    readonly session: SessionId;
    /** Of `user`; `session` is the caller's. */
    readonly userSession: SessionId;
  };
}

/** The caller's role in its own tenant: everything, but no platform administrator. */
export const MANAGER = 'manager';

let count = 0;
let passwordHash: Promise<string> | undefined;

async function hashOfPassword(): Promise<string> {
  const passwords = await Passwords.start({ maxRunning: 1 });
  return passwords.hash(PASSWORD);
}

const id = <Kind extends 'usr' | 'ses' | 'key' | 'iss' | 'whk' | 'dlv' | 'bud'>(kind: Kind) =>
  makeId(kind, Date.now(), randomBytes(10));

/** @param platformAdmin the caller holds the built-in role `admin` instead of a custom role */
export async function makeCase(h: Harness, caller: Case['caller'], platformAdmin: boolean): Promise<Case> {
  const number = ++count;
  const [own, other, fresh] = ['own', 'other', 'fresh'].map((name) => parseTenantId(`case-${number}-${name}`));
  if (own === undefined || other === undefined || fresh === undefined) throw new Error('no tenant id');
  passwordHash ??= hashOfPassword();
  const hash = await passwordHash;
  const [userId, user] = [id('usr'), id('usr')];
  const [sessionId, session, userSession] = [id('ses'), id('ses'), id('ses')];
  const [keyId, key] = [id('key'), id('key')];
  const issuer = id('iss');
  const [webhook, delivery] = [id('whk'), id('dlv')];
  const budget = id('bud');
  const [secret, targetSecret] = [makeApiKey(), makeApiKey()];
  const keyRow = (
    of: KeyId,
    owner: string,
    scopes: string,
    days: number,
    { digest, prefix, lastFour }: typeof secret,
  ): string =>
    `('${of}', '${own}', ${owner}, 'k', '${scopes}', now() + interval '${days} days', '\\x${digest}', '${prefix}', '${lastFour}', 'x')`;
  await h.db.knex.raw(`
    insert into tenants (id, name) values ('${own}', 'Own'), ('${other}', 'Other');
    insert into roles (tenant_id, name, permissions) values ('${own}', '${MANAGER}', '{*}'), ('${own}', 'spare', '{chat:read}');
    insert into policies (tenant_id, name, effect, actions, resources, applies_to)
      values ('${own}', 'spare-${number}', 'deny', '{rag:*}', '{*}', 'roles');
    insert into users (id, tenant_id, email, name, password_hash, password_changed_at) values
      ('${userId}', '${own}', '${userId}@example.test', 'Caller', '${hash.replaceAll("'", '')}', now()),
      ('${user}', '${own}', '${user}@example.test', 'Target', null, null);
    insert into user_roles (user_id, role_name) values ('${userId}', '${platformAdmin ? 'admin' : MANAGER}');
    insert into issuers (id, tenant_id, name, kind, issuer, audiences, algorithms)
      values ('${issuer}', '${own}', 'spare', 'oidc', 'https://127.0.0.1:1/${number}', '{postern}', '{ES256}');
    insert into budgets (id, tenant_id, name, unit, limit_amount, period, applies_to)
      values ('${budget}', '${own}', 'spare', 'tokens', 1000000, 'day', '{"metadata": {"spare": "yes"}}');
    insert into issuer_keys (issuer_id, next_fetch_at) values ('${issuer}', now() + interval '1 day');
    insert into webhooks (id, tenant_id, url, events, secret_sealed, enabled)
      values ('${webhook}', '${own}', 'https://hooks.example/${number}', '{key.*}', '\\x00', false);
    insert into webhook_deliveries (id, webhook_id, type, body, state, next_attempt_at)
      values ('${delivery}', '${webhook}', 'key.revoked', '{}', 'delivered', null);
    insert into sessions (id, user_id, expires_at)
      select of.id, of.user_id, now() + interval '1 hour'
      from (values ('${sessionId}', '${userId}'), ('${session}', '${userId}'), ('${userSession}', '${user}')) as of (id, user_id);
    insert into api_keys (id, tenant_id, user_id, description, scopes, expires_at, digest, prefix, last_four, created_by)
      values ${keyRow(keyId, `'${userId}'`, '{*}', 30, secret)}, ${keyRow(key, 'null', '{chat:read}', 1, targetSecret)};`);
  const jti = randomBytes(16).toString('base64url');
  const { token } = await h.tokens.issue({ userId, sessionId, tenantId: own, nowMs: Date.now(), jti });
  return {
    caller,
    credential: caller === 'key' ? secret.text : token,
    lookedUpAs: caller === 'key' ? secret.digest : token,
    ...{ userId, sessionId, keyId, own, other, fresh, number },
    target: {
      user,
      role: 'spare',
      policy: `spare-${number}`,
      key,
      issuer,
      budget,
      webhook,
      delivery,
      session,
      userSession,
    },
  };
}

/** Tables that a rejected request may write, or that have no data of tenants. */
const PASSED_OVER = new Set([
  ...[
    'changes',
    'feed_state',
    'meta',
    'replicas',
    'signing_keys',
    'decision_counts',
    'recent_decisions',
    'shadow_decision_counts',
    'other_gate_denials',
  ],
  // The server counts an attempt before it checks the password.
  'login_failures',
  'login_addresses',
  ...['audit_unsealed', 'audit_seals', 'audit_chain', 'audit_totals', 'postern_migrations', 'postern_migrations_lock'],
  // Tables of the metering.
  ...[
    'metering_holders',
    'ended_budgets',
    'rate_windows',
    'settlements',
    'settlement_news',
    'reservation_renewals',
    'open_requests',
  ],
  // States and logout tokens of logins by an issuer that were used.
  'sso_used',
  // The places up to which events are announced.
  ...['webhook_cursor', 'key_end_cursors'],
  // Stored answers to requests with an Idempotency-Key.
  'idempotent_answers',
]);

/** How rows of tables without a tenant belong to one. */
const OF_TENANT: Readonly<Record<string, string>> = {
  tenants: 'id like :tenants',
  // The platform's own, which no case may change.
  price_lists: 'true',
  user_logins: 'user_id in (select id from users where tenant_id like :tenants)',
  sessions: 'user_id in (select id from users where tenant_id like :tenants)',
  one_time_tokens: 'user_id in (select id from users where tenant_id like :tenants)',
  refresh_tokens:
    'session_id in (select s.id from sessions s join users u on u.id = s.user_id where u.tenant_id like :tenants)',
  key_counts: 'owner like :tenants or owner in (select id from users where tenant_id like :tenants)',
  key_permissions_used: 'key_id in (select id from api_keys where tenant_id like :tenants)',
  rotated_key_digests: 'key_id in (select id from api_keys where tenant_id like :tenants)',
  issuer_keys: 'issuer_id in (select id from issuers where tenant_id like :tenants)',
  ended_issuer_sessions: 'issuer_id in (select id from issuers where tenant_id like :tenants)',
  webhook_deliveries: 'webhook_id in (select id from webhooks where tenant_id like :tenants)',
  user_identities: 'issuer_id in (select id from issuers where tenant_id like :tenants)',
  policy_roles: 'policy_id in (select id from policies where tenant_id like :tenants)',
};

export type Stored = (q: Queryable, of: Case) => Promise<Readonly<Record<string, string>>>;

/**
 * Returns a reader of all rows of a case's tenants, each table as a digest. Throws for a table without an entry here.
 */
export async function storedReader(h: Harness): Promise<Stored> {
  const { rows } = await h.db.knex.raw<{ rows: { name: string; tenant: boolean }[] }>(
    `select t.table_name as name, bool_or(c.column_name = 'tenant_id') as tenant
     from information_schema.tables t join information_schema.columns c using (table_schema, table_name)
     where t.table_schema = 'public' and t.table_type = 'BASE TABLE' group by 1 order by 1`,
  );
  const parts = rows
    .filter(({ name }) => !PASSED_OVER.has(name))
    .map(({ name, tenant }) => {
      const condition = OF_TENANT[name] ?? (tenant ? 'tenant_id like :tenants' : undefined);
      if (condition === undefined) throw new Error(`say in OF_TENANT or PASSED_OVER what the table ${name} is`);
      return `select '${name}' as name, md5(coalesce(string_agg(row::text, '' order by row::text), '')) as digest
        from (select * from ${name} where ${condition}) row`;
    });
  const sql = parts.join(' union all ');
  return async (q, { number }) => {
    const result = await q.raw<{ rows: { name: string; digest: string }[] }>(sql, { tenants: `case-${number}-%` });
    return Object.fromEntries(result.rows.map(({ name, digest }) => [name, digest]));
  };
}
