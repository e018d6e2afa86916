/**
 * Loads entries of the credential cache. Each prepared statement also returns the position of the change feed in its
 * own snapshot. Concurrent loads of keys share a statement. Rules are read in pieces and parsed in steps.
 */

import type { CacheLoader, Loaded } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import type { IssuerId, KeyDigest, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type {
  IssuerRecord,
  KeyRecord,
  LinkRecord,
  PolicyRecord,
  SessionRecord,
  TenantRecord,
  UserRecord,
} from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';
import { BatchQueue } from './batch-queue.ts';
import { type ConnectionPermits, createConnectionPermits } from './connection-permits.ts';
import type { Database } from './database.ts';
import { ISSUER, link } from './issuer-records.ts';
import type { Row } from './pool.ts';
import {
  issuerRecord,
  keyRecord,
  linkRecord,
  NO_LINK,
  policyRecords,
  sessionRecord,
  tenantRecord,
  userRecord,
} from './rows.ts';

/**
 * Bytes of rules in one piece, not counting its last rule. The thread that decides requests parses it without a pause.
 */
const PIECE_BYTES = 32_768;

/** Arrays in the order of POLICY_MEMBERS and ROLE_MEMBERS (rows.ts): they take half the work of objects. */
export const POLICY = `json_build_array(
  p.name, p.effect, p.actions, p.resources, p.conditions, p.applies_to, p.enabled, p.reports,
  array(select r.role_name from policy_roles r where r.policy_id = p.id order by r.role_name))`;
export const BUDGET = `json_build_array(
  p.name, p.id, p.unit, p.limit_amount, p.period, p.timezone, p.applies_to, p.per, p.models, p.action, p.epoch)`;
export const ROLE = 'json_build_array(p.name, p.permissions, p.resource_constraints)';

/** Returns SQL for the rules of one table as pieces of JSON, ordered by name. */
const pieces = (table: 'policies' | 'roles' | 'budgets', rule: string, where: string): string => `
  select '${table}' as list, p.piece, json_agg(${rule} order by p.name collate "C")::text as rules
  from (
    select p.*, sum(p.octets) over (order by p.name collate "C") / ${PIECE_BYTES} as piece from ${table} p where ${where}
  ) p
  group by p.piece`;

/** SQL for the status of user `u`: a user that a directory suspended counts as deactivated. */
export const USER_STATUS = `case when u.directory_suspension is null then u.status else 'deactivated' end`;

/** Columns of `k` for `keyRecord`, except `by_previous`. */
export const KEY = `k.id, k.tenant_id, k.user_id, k.scopes, k.resource_constraints, k.rate_limit_rpm,
        floor(extract(epoch from k.expires_at) * 1000)::float8 as expires_at_ms,
        floor(extract(epoch from k.previous_until) * 1000)::float8 as previous_until_ms,
        k.revoked_at is not null as revoked, k.disabled_at is not null as disabled, k.proof_issuer_id, k.rate_limits,
        k.metadata`;

/**
 * Returns SQL for the key with a digest or previous digest. The planner would read a small table for an OR of both, and
 * a connection keeps the plan of a table that was small when it was made.
 */
const keyOf = (digest: string): string => `lateral (
        select * from api_keys where digest = ${digest} union all select * from api_keys where previous_digest = ${digest} offset 0
      ) k on true`;

/**
 * SQL for the time at which session `s` ended; null = it has not. A row of `ended_issuer_sessions` counts until the upkeep
 * has written `ended_at`.
 */
export const SESSION_ENDED_AT = `least(s.ended_at, (
  select min(e.begun_until) from ended_issuer_sessions e where e.issuer_id = s.issuer_id and s.created_at <= e.begun_until
    and (e.which = 'all' or e.which = 'users' and s.user_id is not null or e.which = 'logins' and s.sso_subject is not null)))`;

/** Columns of `s` for `sessionRecord`. */
export const SESSION = `s.id, s.user_id, s.api_key_id, s.issuer_id, s.scope, ${SESSION_ENDED_AT} is not null as ended,
        floor(extract(epoch from s.expires_at) * 1000)::float8 as expires_at_ms`;

/**
 * Each returns a row for a missing entry as well, with `id` null, so that the position is always known. Those that
 * return many rows read it in a subquery, which runs once.
 */
export const STATEMENTS = {
  key: {
    name: 'live_key',
    text: `
      select feed_position() as as_of, ${KEY}, k.digest <> $1 as by_previous
      from (select) one left join ${keyOf('$1')}`,
  },
  /** All keys are read from one snapshot and have one position. */
  keys: {
    name: 'live_keys',
    text: `
      select feed.as_of, requested.ordinality, ${KEY}, k.digest <> requested.digest as by_previous
      from (select feed_position() as as_of offset 0) feed cross join unnest($1::bytea[]) with ordinality as requested(digest, ordinality)
      left join ${keyOf('requested.digest')}`,
  },
  user: {
    name: 'live_user',
    text: `
      select feed_position() as as_of, u.id, u.tenant_id,
        ${USER_STATUS} as status, u.rate_limits,
        array(select distinct r.role_name from user_roles r where r.user_id = u.id order by r.role_name) as roles
      from (select) one left join users u on u.id = $1`,
  },
  session: {
    name: 'live_session',
    text: `
      select feed_position() as as_of, ${SESSION}
      from (select) one left join sessions s on s.id = $1`,
  },
  tenant: {
    name: 'live_tenant',
    text: `
      select (select feed_position()) as as_of, t.id, t.status, t.settings, t.quotas, pieces.list, pieces.rules
      from (select) one left join tenants t on t.id = $1 and t.deleted_at is null
      left join (
        ${pieces('roles', ROLE, 'p.tenant_id = $1')} union all ${pieces('policies', POLICY, "coalesce(p.tenant_id, '') = $1")}
        union all ${pieces('budgets', BUDGET, 'p.tenant_id = $1 and p.enabled')}
      ) pieces on true
      order by pieces.list, pieces.piece`,
  },
  issuer: {
    name: 'live_issuer',
    text: `
      select feed_position() as as_of, ${ISSUER}
      from (select) one left join (
        select * from issuers where issuer = $1 order by enabled desc, id limit 1
      ) i on true left join issuer_keys f on f.issuer_id = i.id`,
  },
  link: {
    name: 'live_link',
    text: `
      select feed_position() as as_of, i.id, ${link('$2')}
      from (select) one left join issuers i on i.id = $1`,
  },
  globalPolicies: {
    name: 'live_global_policies',
    text: `
      select (select feed_position()) as as_of, pieces.list, pieces.rules
      from (select) one left join (${pieces('policies', POLICY, "coalesce(p.tenant_id, '') = ''")}) pieces on true
      order by pieces.piece`,
  },
} as const;

/**
 * The largest number of connections for loads of rules. Those of a large tenant take long, and other loads need
 * connections as well.
 */
const MAX_RULE_LOADS = 4;
const MAX_RULE_WAIT_MS = 2000;
/** More than the cache's own limit of loads. */
const MAX_RULE_LOADS_WAITING = 1000;

export class PostgresCacheLoader implements CacheLoader {
  readonly #db: Database;
  readonly #rules: ConnectionPermits;
  /** Keys that were found before do not share a statement with unknown keys, which may be many. */
  readonly #keys: { readonly [Class in 'known' | 'unseen']: BatchQueue<Buffer, Row> };

  constructor(db: Database) {
    this.#db = db;
    this.#rules = createConnectionPermits({
      permits: MAX_RULE_LOADS,
      maxWaiting: MAX_RULE_LOADS_WAITING,
      maxWaitMs: MAX_RULE_WAIT_MS,
    });
    const queue = () => new BatchQueue<Buffer, Row>((digests) => this.#keyRows(digests));
    this.#keys = { known: queue(), unseen: queue() };
  }

  async key(digest: KeyDigest, known: boolean): Promise<Loaded<KeyRecord | undefined>> {
    const row = await this.#keys[known ? 'known' : 'unseen'].request(Buffer.from(digest, 'hex'));
    return loaded(row, (found) => keyRecord(found, digest));
  }

  async user(id: UserId): Promise<Loaded<UserRecord | undefined>> {
    return loaded(first(await this.#query(STATEMENTS.user, [id])), userRecord);
  }

  async session(id: SessionId): Promise<Loaded<SessionRecord | undefined>> {
    return loaded(first(await this.#query(STATEMENTS.session, [id])), sessionRecord);
  }

  async tenant(id: TenantId): Promise<Loaded<Steps<TenantRecord> | undefined>> {
    const rows = await this.#rules.run(() => this.#query(STATEMENTS.tenant, [id]));
    return loaded(first(rows), (row) =>
      tenantRecord(row, {
        roles: piecesOf(rows, 'roles'),
        policies: piecesOf(rows, 'policies'),
        budgets: piecesOf(rows, 'budgets'),
      }),
    );
  }

  async globalPolicies(): Promise<Loaded<Steps<readonly PolicyRecord[]>>> {
    const rows = await this.#rules.run(() => this.#query(STATEMENTS.globalPolicies, []));
    return { value: policyRecords(piecesOf(rows, 'policies')), asOf: position(first(rows)) };
  }

  async issuer(value: string): Promise<Loaded<IssuerRecord | undefined>> {
    return loaded(first(await this.#query(STATEMENTS.issuer, [value])), issuerRecord);
  }

  async link(issuerId: IssuerId, subject: string): Promise<Loaded<LinkRecord>> {
    const { value, asOf } = loaded(first(await this.#query(STATEMENTS.link, [issuerId, subject])), linkRecord);
    return { value: value ?? NO_LINK, asOf };
  }

  /** Returns a row for each digest, in order. */
  async #keyRows(digests: readonly Buffer[]): Promise<readonly Row[]> {
    if (digests.length === 1) return [first(await this.#query(STATEMENTS.key, digests))];
    const rows = new Map((await this.#query(STATEMENTS.keys, [digests])).map((row) => [row['ordinality'], row]));
    return digests.map((_digest, i) => first([rows.get(i + 1)]));
  }

  async #query(
    statement: (typeof STATEMENTS)[keyof typeof STATEMENTS],
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    return this.#db.query({ ...statement, values }).catch((error: unknown) => {
      // The statements accept any value, so every error is a failure of the server.
      throw error instanceof Fault ? error : new Fault('the database rejected a lookup', { cause: error });
    });
  }
}

function first(rows: readonly (Row | undefined)[]): Row {
  const [row] = rows;
  if (row === undefined) throw new Fault('the database returned no row for a lookup');
  return row;
}

function loaded<T>(row: Row, read: (row: Row) => T): Loaded<T | undefined> {
  return { value: row['id'] === null ? undefined : read(row), asOf: position(row) };
}

function piecesOf(rows: readonly Row[], list: 'roles' | 'policies' | 'budgets'): readonly string[] {
  return rows.flatMap((row) => (row['list'] === list && typeof row['rules'] === 'string' ? [row['rules']] : []));
}

function position(row: Row): number {
  const asOf = row['as_of'];
  if (typeof asOf !== 'number') throw new Fault('the database did not return the position of the change feed');
  return asOf;
}
