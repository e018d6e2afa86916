/** What the live cache loads: one prepared statement each, which also says how far along the change feed its own snapshot was. */

import { Fault } from '../domain/errors.ts';
import type { KeyDigest, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { KeyRecord, PolicyRecord, SessionRecord, TenantRecord, UserRecord } from '../domain/records.ts';
import type { LiveSource, Loaded } from '../live/ports.ts';
import type { Database } from './database.ts';
import type { Row } from './pool.ts';
import { keyRecord, policyRecords, sessionRecord, tenantRecord, userRecord } from './rows.ts';

/** Lists of POLICY_MEMBERS and ROLE_MEMBERS: half the work of objects that name each member again. */
const POLICIES = `
  select coalesce(json_agg(json_build_array(
    p.name, p.effect, p.actions, p.resources, p.conditions, p.applies_to, p.enabled,
    array(select r.role_name from policy_roles r where r.policy_id = p.id order by r.role_name)
  )), '[]')
  from policies p`;
const ROLES = `select coalesce(json_agg(json_build_array(r.name, r.permissions, r.resource_constraints)), '[]') from roles r`;

/** Each gives one row even when there is nothing, so that the position is always known; then `id` is null. */
export const STATEMENTS = {
  key: {
    name: 'live_key',
    text: `
      select feed_position() as as_of, k.id, k.tenant_id, k.user_id, k.scopes, k.resource_constraints, k.rate_limit_rpm,
        floor(extract(epoch from k.expires_at) * 1000)::float8 as expires_at_ms,
        floor(extract(epoch from k.previous_until) * 1000)::float8 as previous_until_ms,
        k.digest <> $1 as by_previous,
        k.revoked_at is not null as revoked
      from (select) one left join api_keys k on k.digest = $1 or k.previous_digest = $1`,
  },
  user: {
    name: 'live_user',
    text: `
      select feed_position() as as_of, u.id, u.tenant_id, u.status,
        array(select distinct r.role_name from user_roles r where r.user_id = u.id order by r.role_name) as roles
      from (select) one left join users u on u.id = $1`,
  },
  session: {
    name: 'live_session',
    text: `
      select feed_position() as as_of, s.id, s.user_id, s.ended_at is not null as ended,
        floor(extract(epoch from s.expires_at) * 1000)::float8 as expires_at_ms
      from (select) one left join sessions s on s.id = $1`,
  },
  tenant: {
    name: 'live_tenant',
    text: `
      select feed_position() as as_of, t.id, t.status, t.settings, t.quotas,
        (${ROLES} where r.tenant_id = $1) as roles,
        (${POLICIES} where coalesce(p.tenant_id, '') = $1) as policies
      from (select) one left join tenants t on t.id = $1 and t.deleted_at is null`,
  },
  globalPolicies: {
    name: 'live_global_policies',
    text: `select feed_position() as as_of, (${POLICIES} where coalesce(p.tenant_id, '') = '') as policies`,
  },
} as const;

export class PostgresLiveSource implements LiveSource {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  key(digest: KeyDigest): Promise<Loaded<KeyRecord | undefined>> {
    return this.#load(STATEMENTS.key, Buffer.from(digest, 'hex'), (row) => keyRecord(row, digest));
  }

  user(id: UserId): Promise<Loaded<UserRecord | undefined>> {
    return this.#load(STATEMENTS.user, id, userRecord);
  }

  session(id: SessionId): Promise<Loaded<SessionRecord | undefined>> {
    return this.#load(STATEMENTS.session, id, sessionRecord);
  }

  tenant(id: TenantId): Promise<Loaded<TenantRecord | undefined>> {
    return this.#load(STATEMENTS.tenant, id, tenantRecord);
  }

  async globalPolicies(): Promise<Loaded<readonly PolicyRecord[]>> {
    const row = await this.#one(STATEMENTS.globalPolicies, []);
    return { value: policyRecords(row['policies']), asOf: position(row) };
  }

  async #load<T>(statement: (typeof STATEMENTS)[keyof typeof STATEMENTS], key: unknown, read: (row: Row) => T) {
    const row = await this.#one(statement, [key]);
    return { value: row['id'] === null ? undefined : read(row), asOf: position(row) };
  }

  async #one(statement: (typeof STATEMENTS)[keyof typeof STATEMENTS], values: readonly unknown[]): Promise<Row> {
    const rows = await this.#db.query({ ...statement, values }).catch((error: unknown) => {
      // These statements take any value, so even an answer of the server is a failure of ours.
      throw error instanceof Fault ? error : new Fault('the store refused a look-up', { cause: error });
    });
    const [row] = rows;
    if (row === undefined) {
      throw new Fault('the store gave no row for a look-up');
    }
    return row;
  }
}

function position(row: Row): number {
  const asOf = row['as_of'];
  if (typeof asOf !== 'number') {
    throw new Fault('the store does not tell the position of its change feed');
  }
  return asOf;
}
