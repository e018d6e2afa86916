/** API keys: their digests and what they may do. The key itself is nowhere here. */

import { type KeyDigest, type KeyId, parseKeyDigest, type TenantId, type UserId } from '../../domain/ids.ts';
import type { Metadata, ResourceConstraints } from '../../domain/records.ts';
import { ASKED, readsPairs } from '../../store/batched.ts';
import {
  type BoundedRow,
  bytesBinding,
  type Page,
  type PageRows,
  pageRows,
  scopeBinding,
  scopeCondition,
  storedKey,
  storedTenant,
  storedUser,
  type TenantScope,
  withinBytes,
} from '../../store/paging.ts';
import { countUpTo, type Prepared, runNamedQuery, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';
import { rememberDigest } from '../explain/ended-queries.ts';
import {
  type KeyFilter,
  keyBindings,
  keyConditions,
  keyIdsInOrder,
  keysInAnyOrder,
  textConditions,
} from './list-queries.ts';
import { keysByIndex, searchKeyIds } from './search-queries.ts';

export type { KeyFilter, KeyStatus } from './list-queries.ts';

export interface StoredKey {
  readonly id: KeyId;
  readonly tenantId: TenantId;
  /** Undefined = the tenant's own. */
  readonly userId: UserId | undefined;
  /** null = none. */
  readonly name: string | null;
  readonly description: string;
  readonly metadata: Metadata;
  readonly prefix: string;
  readonly lastFour: string;
  readonly scopes: readonly string[];
  readonly constraints: ResourceConstraints;
  readonly rateLimitRpm: number | null;
  /** True if the current secret was imported as a digest. */
  readonly imported: boolean;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  /** The id of a user or a key; `system` for the server's own. */
  readonly createdBy: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface KeyRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly user_id: string | null;
  readonly name: string | null;
  readonly description: string;
  readonly metadata: Metadata;
  readonly imported: boolean;
  readonly prefix: string;
  readonly last_four: string;
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly rate_limit_rpm: number | null;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
  readonly created_by: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const COLUMNS = `id, tenant_id, user_id, name, description, metadata, imported, prefix, last_four, scopes, resource_constraints, rate_limit_rpm, expires_at,
    revoked_at, last_used_at, created_by, created_at, updated_at`;

const KEY = `select ${COLUMNS} from api_keys`;

/** What a key takes in an answer, by and large. */
const OCTETS =
  'octet_length(scopes::text) + octet_length(resource_constraints::text) + octet_length(metadata::text) + 500';

/** The first of two numbers of an advisory lock; the second is the owner's. */
const KEYS_LOCK = 726543499;
const ACTIVE_NOW = `not revoked and expiry_month >= expiry_month_of(statement_timestamp())
  and (expires_at is null or expires_at > statement_timestamp())`;

/** The first key of which the owner had as many new ones as it may, by the newest. Ids begin with the time. */
function newKeys(ofOwner: string): string {
  return `select (extract(epoch from created_at - clock_timestamp()) * 1000 + $5::float8)::float8 as wait_ms from api_keys
    where ${ofOwner} and tenant_id = $1 and id > $3 order by id desc offset $4 limit 1`;
}

const STATEMENTS = {
  lock: { name: 'lock_key', text: `${KEY} where tenant_id = $1 and id = $2 for update` },
  share: { name: 'share_key', text: `${KEY} where tenant_id = $1 and id = $2 for share` },
  /** The ids alone find the rows: with the tenant in sight, the planner may walk through all of the tenant's keys. */
  byIds: {
    name: 'keys_by_ids',
    text: `with keys as materialized (select ${COLUMNS}, ${OCTETS} as octets from api_keys where id = any($1::text[]))
      ${withinBytes('select * from keys where tenant_id = coalesce($2, tenant_id)', 'id').replace(':maxBytes', '$3')}`,
  },
  insert: {
    name: 'insert_key',
    text: `insert into api_keys (id, tenant_id, user_id, name, description, metadata, imported, scopes, resource_constraints, rate_limit_rpm,
        expires_at, digest, prefix, last_four, created_by, created_at, updated_at)
      select $1, $2, $3, $4, $5, $6::jsonb, $7, $8::text[], $9::jsonb, $10, $11, decode($12, 'hex'), $13, $14, $15, at, at
      from (select coalesce($16::timestamptz, clock_timestamp()) as at) made`,
  },
  // Keys of users and of tenants are locked alike: their ids never meet.
  hold: { name: 'hold_keys_of', text: `select pg_advisory_xact_lock(${KEYS_LOCK}, hashtext($1::text))` },
  countOfUser: {
    name: 'count_active_keys_of_user',
    text: `select count(*)::int as active from (select from api_keys where user_id = $1 and tenant_id = $2 and ${ACTIVE_NOW} limit $3) keys`,
  },
  countOfTenant: {
    name: 'count_active_keys_of_tenant',
    text: `select count(*)::int as active from (select from api_keys where user_id is null and tenant_id = $1 and ${ACTIVE_NOW} limit $2) keys`,
  },
  newOfUser: { name: 'new_keys_of_user', text: newKeys('user_id = $2') },
  newOfTenant: { name: 'new_keys_of_tenant', text: newKeys('user_id is null and tenant_id = $2') },
} as const satisfies Readonly<Record<string, Prepared>>;

const INSERT_NEW: Prepared = {
  name: 'insert_new_key',
  text: `${STATEMENTS.insert.text} on conflict (digest) do nothing returning id`,
};

function toKey(row: KeyRow): StoredKey {
  return {
    id: storedKey(row.id),
    tenantId: storedTenant(row.tenant_id),
    userId: row.user_id === null ? undefined : storedUser(row.user_id),
    name: row.name,
    description: row.description,
    metadata: row.metadata,
    imported: row.imported,
    prefix: row.prefix,
    lastFour: row.last_four,
    scopes: row.scopes,
    constraints: row.resource_constraints,
    rateLimitRpm: row.rate_limit_rpm,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** In the order in which they were made. */
export async function listKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<PageRows<StoredKey>> {
  if (filter.q !== undefined || filter.prefix !== undefined) {
    return keysOfIds(q, scope, page, await searchKeyIds(q, scope, filter, page, now));
  }
  const { sql, bindings } = keyIdsInOrder(scope, filter, page, now);
  const found = `select ${COLUMNS}, ${OCTETS} as octets from api_keys where ${scopeCondition(scope, 'tenant_id')} and id = any(array(${sql}))`;
  const asking = { sql: withinBytes(found, 'id'), bindings: { ...bindings, ...bytesBinding(page) } };
  return pageRows(await runNamedQuery<KeyRow & BoundedRow>(q, asking), page, toKey);
}

/** In the order of the ids. A key that upkeep has removed since the search found it is left out. */
async function keysOfIds(
  q: Queryable,
  scope: TenantScope,
  page: Page,
  ids: readonly string[],
): Promise<PageRows<StoredKey>> {
  const values = [ids, scopeBinding(scope).tenant ?? null, bytesBinding(page).maxBytes];
  return pageRows(await runPrepared<KeyRow & BoundedRow>(q, STATEMENTS.byIds, values), page, toKey);
}

/** Ids of one page. */
export async function listKeyIds(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<readonly KeyId[]> {
  if (filter.q !== undefined || filter.prefix !== undefined) {
    return (await searchKeyIds(q, scope, filter, page, now)).map(storedKey);
  }
  return (await runNamedQuery<{ id: string }>(q, keyIdsInOrder(scope, filter, page, now))).map((row) =>
    storedKey(row.id),
  );
}

/** Returns the bytes that keys of a tenant take as stored, by and large. */
export async function keysSize(q: Queryable, tenant: TenantId, ids: readonly KeyId[]): Promise<number> {
  const { rows } = await q.raw<{ rows: { bytes: number }[] }>(
    `select coalesce(sum(${OCTETS}), 0)::float8 as bytes from api_keys where tenant_id = :tenant and id = any(cast(:ids as text[]))`,
    { tenant, ids },
  );
  return rows[0]?.bytes ?? 0;
}

/** Those of a tenant's keys with these ids that the filter matches, by id. */
export async function findKeys(
  q: Queryable,
  tenant: TenantId,
  ids: readonly KeyId[],
  filter: KeyFilter,
  now: Date,
): Promise<readonly StoredKey[]> {
  const scope = { kind: 'one', tenant } as const;
  const page = { after: undefined, take: ids.length };
  const conditions = [
    ...keyConditions(scope, filter, page),
    ...textConditions(filter),
    'k.id = any(cast(:ids as text[]))',
  ];
  const bindings = { ...keyBindings(scope, filter, page, now), ids };
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `${KEY} where id in (select k.id from api_keys k where ${conditions.join(' and ')}) order by id`,
    bindings,
  );
  return rows.map(toKey);
}

/**
 * The keys that some of these digests belong to, now or in the grace of a rotation. Holds the keys until the transaction ends, so that no
 * rotation moves a digest unseen.
 */
export async function shareKeysOfDigests(
  q: Queryable,
  digests: readonly KeyDigest[],
): Promise<ReadonlyMap<KeyDigest, { readonly id: KeyId; readonly tenantId: TenantId }>> {
  const { rows } = await q.raw<{ rows: { id: string; tenant_id: string; digests: readonly (string | null)[] }[] }>(
    `select id, tenant_id, array[encode(digest, 'hex'), encode(previous_digest, 'hex')] as digests from api_keys
     where digest = any(cast(:digests as bytea[])) or previous_digest = any(cast(:digests as bytea[]))
     order by id collate "C" for share`,
    { digests: digests.map((digest) => `\\x${digest}`) },
  );
  const found = new Map<KeyDigest, { readonly id: KeyId; readonly tenantId: TenantId }>();
  for (const row of rows) {
    for (const text of row.digests) {
      const digest = text === null ? undefined : parseKeyDigest(text);
      if (digest !== undefined) found.set(digest, { id: storedKey(row.id), tenantId: storedTenant(row.tenant_id) });
    }
  }
  return found;
}

/** Counts the keys of a list, up to `most`. */
export async function countKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  now: Date,
  most: number,
): Promise<number> {
  const isSearch = filter.q !== undefined || filter.prefix !== undefined;
  const everything = { after: undefined, take: 0 };
  return countUpTo(
    q,
    isSearch ? keysByIndex(scope, filter, everything, now) : keysInAnyOrder(scope, filter, now),
    most,
  );
}

const keyOfPair = readsPairs<KeyRow>({
  one: { name: 'find_key', text: `${KEY} where tenant_id = $1 and id = $2` },
  many: {
    name: 'find_keys',
    text: `select ${COLUMNS}, asked.asked_as from ${ASKED} join api_keys on tenant_id = asked.first and id = asked.second`,
  },
});

export async function findKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<StoredKey | undefined> {
  const row = await keyOfPair(q, tenant, id);
  return row && toKey(row);
}

/** Returns the tenant of a key; undefined if there is no such key. */
export async function tenantOfKey(q: Queryable, id: KeyId): Promise<TenantId | undefined> {
  const { rows } = await q.raw<{ rows: { tenant_id: string }[] }>('select tenant_id from api_keys where id = :id', {
    id,
  });
  return rows[0] && storedTenant(rows[0].tenant_id);
}

/** Holds the key until the transaction ends and answers it as it then is. */
export async function lockKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<StoredKey | undefined> {
  const [row] = await runPrepared<KeyRow>(q, STATEMENTS.lock, [tenant, id]);
  return row && toKey(row);
}

/** Returns the key and keeps it from being changed until the transaction ends. */
export async function shareKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<StoredKey | undefined> {
  const [row] = await runPrepared<KeyRow>(q, STATEMENTS.share, [tenant, id]);
  return row && toKey(row);
}

export interface KeySecret {
  readonly digest: KeyDigest;
  readonly prefix: string;
  readonly lastFour: string;
}

export type NewKey = Pick<
  StoredKey,
  | 'id'
  | 'tenantId'
  | 'userId'
  | 'name'
  | 'description'
  | 'metadata'
  | 'imported'
  | 'scopes'
  | 'constraints'
  | 'rateLimitRpm'
  | 'expiresAt'
>;

/**
 * Makes the callers that add to an owner's active keys wait for each other, until the transaction ends.
 * @param owner undefined = the tenant itself
 */
export async function holdKeysOf(q: Queryable, tenant: TenantId, owner: UserId | undefined): Promise<void> {
  await runPrepared(q, STATEMENTS.hold, [owner ?? tenant]);
}

/** Returns how many active keys an owner has, counted up to `most`. */
export async function countActiveKeys(
  q: Queryable,
  tenant: TenantId,
  owner: UserId | undefined,
  most: number,
): Promise<number> {
  const rows =
    owner === undefined
      ? await runPrepared<{ active: number }>(q, STATEMENTS.countOfTenant, [tenant, most])
      : await runPrepared<{ active: number }>(q, STATEMENTS.countOfUser, [owner, tenant, most]);
  return rows[0]?.active ?? 0;
}

/**
 * Returns the milliseconds until an owner may have one more new key, if it may have so many within a time.
 * @param since the least id of a key that is made at the beginning of that time
 */
export async function newKeyDelayMs(
  q: Queryable,
  tenant: TenantId,
  owner: UserId | undefined,
  { most, withinMs, since }: { readonly most: number; readonly withinMs: number; readonly since: KeyId },
): Promise<number> {
  const [oldest] = await runPrepared<{ wait_ms: number }>(
    q,
    owner === undefined ? STATEMENTS.newOfTenant : STATEMENTS.newOfUser,
    [...[tenant, owner ?? tenant, since, most - 1, withinMs]],
  );
  return Math.max(0, oldest?.wait_ms ?? 0);
}

/** Removes a batch of keys that were revoked, or have expired, longer ago than `keepMs`, the longest first. Returns their number. */
export async function pruneEndedKeys(q: Queryable, keepMs: number, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from api_keys where id in (
       select id from api_keys where least(revoked_at, expires_at) < statement_timestamp() - :keepMs * interval '1 millisecond'
       order by least(revoked_at, expires_at) limit :batch for update skip locked)`,
    { keepMs, batch },
  );
  return rowCount;
}

/** @returns false when a key with that digest exists */
export async function insertNewKey(
  q: Queryable,
  key: NewKey,
  secret: KeySecret,
  createdBy: string,
  at: DatabaseTime,
): Promise<boolean> {
  return (await runPrepared(q, INSERT_NEW, insertedValues(key, secret, createdBy, at))).length > 0;
}

/** @param at when; default: now */
export async function insertKey(
  q: Queryable,
  key: NewKey,
  secret: KeySecret,
  createdBy: string,
  at?: DatabaseTime,
): Promise<void> {
  await runPrepared(q, STATEMENTS.insert, insertedValues(key, secret, createdBy, at));
}

function insertedValues(
  key: NewKey,
  secret: KeySecret,
  createdBy: string,
  at: DatabaseTime | undefined,
): readonly unknown[] {
  const { id, tenantId, userId = null, name, description, imported, scopes, rateLimitRpm, expiresAt } = key;
  const { digest, prefix, lastFour } = secret;
  const [metadata, constraints] = [JSON.stringify(key.metadata), JSON.stringify(key.constraints)];
  const made = [
    id,
    tenantId,
    userId,
    name,
    description,
    metadata,
    imported,
    scopes,
    constraints,
    rateLimitRpm,
    expiresAt,
  ];
  return [...made, digest, prefix, lastFour, createdBy, at?.text ?? null];
}

/** Its tenant, owner and secret stay as they are. */
export async function updateKey(q: Queryable, key: NewKey): Promise<void> {
  await q.raw(
    `update api_keys set name = :name, description = :description, metadata = cast(:metadata as jsonb), scopes = cast(:scopes as text[]), resource_constraints = cast(:constraints as jsonb),
       rate_limit_rpm = :rateLimitRpm, expires_at = :expiresAt, updated_at = clock_timestamp()
     where tenant_id = :tenant and id = :id`,
    bindings(key),
  );
}

/** Gives the key a new secret; the old one works until `previousUntil`, or not at all when that is null. */
export async function rotateKey(
  q: Queryable,
  tenant: TenantId,
  id: KeyId,
  secret: KeySecret,
  previousUntil: Date | null,
): Promise<void> {
  await rememberDigest(q, id, previousUntil);
  await q.raw(
    `update api_keys set digest = decode(:digest, 'hex'), prefix = :prefix, last_four = :lastFour, imported = false,
       previous_digest = case when cast(:previousUntil as timestamptz) is null then null else digest end,
       previous_until = :previousUntil, updated_at = clock_timestamp()
     where tenant_id = :tenant and id = :id`,
    { tenant, id, ...secret, previousUntil },
  );
}

/** The digest that a rotation left behind stops as well. */
export async function revokeKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<void> {
  await q.raw(
    `update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
     where tenant_id = :tenant and id = :id and revoked_at is null`,
    { tenant, id },
  );
}

/** Revokes those of the keys that are not revoked, and returns them as they are then, by id. */
export async function revokeKeys(q: Queryable, tenant: TenantId, ids: readonly KeyId[]): Promise<readonly StoredKey[]> {
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `with revoked as (
       update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
       where tenant_id = :tenant and id = any(cast(:ids as text[])) and revoked_at is null returning ${COLUMNS}
     )
     select ${COLUMNS} from revoked order by id`,
    { tenant, ids },
  );
  return rows.map(toKey);
}

/**
 * For an owner who is deleted. Answers which keys were revoked. A key that has expired needs nothing: without its owner it never works again,
 * and an owner may have any number of such keys.
 */
export async function revokeKeysOfUser(q: Queryable, tenant: TenantId, userId: UserId): Promise<readonly KeyId[]> {
  const { rows } = await q.raw<{ rows: { id: string }[] }>(
    `update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
     where tenant_id = :tenant and user_id = :userId and ${ACTIVE_NOW} returning id`,
    { tenant, userId },
  );
  return rows.map((row) => storedKey(row.id));
}

function bindings(key: NewKey) {
  return {
    id: key.id,
    tenant: key.tenantId,
    userId: key.userId ?? null,
    name: key.name,
    description: key.description,
    metadata: JSON.stringify(key.metadata),
    scopes: key.scopes,
    constraints: JSON.stringify(key.constraints),
    rateLimitRpm: key.rateLimitRpm,
    expiresAt: key.expiresAt,
  };
}

/** What an explanation needs to look at a key as if it had been shown. */
export async function keyDigest(q: Queryable, scope: TenantScope, id: KeyId): Promise<KeyDigest | undefined> {
  const { rows } = await q.raw<{ rows: { digest: string }[] }>(
    `select encode(digest, 'hex') as digest from api_keys where ${scopeCondition(scope, 'tenant_id')} and id = :id`,
    { ...scopeBinding(scope), id },
  );
  return rows[0] && parseKeyDigest(rows[0].digest);
}
