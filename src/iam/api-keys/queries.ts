/** API keys: their digests and what they may do. The key itself is nowhere here. */

import { Fault } from '../../domain/errors.ts';
import { type KeyDigest, type KeyId, parseKeyDigest, type TenantId, type UserId } from '../../domain/ids.ts';
import { ASKED, readsPairs } from '../../store/batched.ts';
import {
  type BoundedRow,
  bytesBinding,
  type Page,
  type PageRows,
  pageRows,
  scopeBinding,
  scopeCondition,
  type TenantScope,
  withinBytes,
} from '../../store/paging.ts';
import { countUpTo, type Prepared, runNamedQuery, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';
import { rememberDigest } from '../explain/ended-queries.ts';
import { columnsOf } from '../schema/entity.ts';
import { apiKey, type KeyRow } from './entity.ts';
import {
  type KeyFilter,
  keyBindings,
  keyConditions,
  keyIdsInOrder,
  keysInAnyOrder,
  textConditions,
} from './list-queries.ts';
import type { RequestedColumns } from './request.ts';
import { keysByIndex, searchKeyIds } from './search-queries.ts';

export type { KeyFilter } from './list-queries.ts';

/** The user that owns a key; null = its tenant. */
type KeyOwner = KeyRow['user_id'];

const COLUMNS = columnsOf(apiKey).join(', ');

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

/** In the order in which they were made. */
export async function listKeys(
  q: Queryable,
  scope: TenantScope,
  filter: KeyFilter,
  page: Page,
  now: Date,
): Promise<PageRows<KeyRow>> {
  if (filter.q !== undefined || filter.prefix !== undefined) {
    return keysOfIds(q, scope, page, await searchKeyIds(q, scope, filter, page, now));
  }
  const { sql, bindings } = keyIdsInOrder(scope, filter, page, now);
  const found = `select ${COLUMNS}, ${OCTETS} as octets from api_keys where ${scopeCondition(scope, 'tenant_id')} and id = any(array(${sql}))`;
  const asking = { sql: withinBytes(found, 'id'), bindings: { ...bindings, ...bytesBinding(page) } };
  return pageRows(await runNamedQuery<KeyRow & BoundedRow>(q, asking), page, (row) => row);
}

/** In the order of the ids. A key that upkeep has removed since the search found it is left out. */
async function keysOfIds(
  q: Queryable,
  scope: TenantScope,
  page: Page,
  ids: readonly string[],
): Promise<PageRows<KeyRow>> {
  const values = [ids, scopeBinding(scope).tenant ?? null, bytesBinding(page).maxBytes];
  return pageRows(await runPrepared<KeyRow & BoundedRow>(q, STATEMENTS.byIds, values), page, (row) => row);
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
    return await searchKeyIds(q, scope, filter, page, now);
  }
  return (await runNamedQuery<{ id: KeyId }>(q, keyIdsInOrder(scope, filter, page, now))).map(({ id }) => id);
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
): Promise<readonly KeyRow[]> {
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
  return rows;
}

/**
 * The keys that some of these digests belong to, now or in the grace of a rotation. Holds the keys until the transaction ends, so that no
 * rotation moves a digest unseen.
 */
export async function shareKeysOfDigests(
  q: Queryable,
  digests: readonly KeyDigest[],
): Promise<ReadonlyMap<KeyDigest, Pick<KeyRow, 'id' | 'tenant_id'>>> {
  const { rows } = await q.raw<{
    rows: (Pick<KeyRow, 'id' | 'tenant_id'> & { digests: readonly (string | null)[] })[];
  }>(
    `select id, tenant_id, array[encode(digest, 'hex'), encode(previous_digest, 'hex')] as digests from api_keys
     where digest = any(cast(:digests as bytea[])) or previous_digest = any(cast(:digests as bytea[]))
     order by id collate "C" for share`,
    { digests: digests.map((digest) => `\\x${digest}`) },
  );
  return new Map(
    rows.flatMap((row) =>
      row.digests.flatMap((text) => {
        const digest = text === null ? undefined : parseKeyDigest(text);
        return digest === undefined ? [] : [[digest, row] as const];
      }),
    ),
  );
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

export async function findKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<KeyRow | undefined> {
  return keyOfPair(q, tenant, id);
}

/** Returns the tenant of a key; undefined if there is no such key. */
export async function tenantOfKey(q: Queryable, id: KeyId): Promise<TenantId | undefined> {
  const { rows } = await q.raw<{ rows: Pick<KeyRow, 'tenant_id'>[] }>('select tenant_id from api_keys where id = :id', {
    id,
  });
  return rows[0]?.tenant_id;
}

/** Locks the key until the transaction ends. */
export async function lockKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<KeyRow | undefined> {
  const [row] = await runPrepared<KeyRow>(q, STATEMENTS.lock, [tenant, id]);
  return row;
}

/** Locks the key against changes until the transaction ends. */
export async function shareKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<KeyRow | undefined> {
  const [row] = await runPrepared<KeyRow>(q, STATEMENTS.share, [tenant, id]);
  return row;
}

/** Makes the callers that add active keys to an owner wait for each other, until the transaction ends. */
export async function lockActiveKeys(q: Queryable, tenant: TenantId, owner: KeyOwner): Promise<void> {
  await runPrepared(q, STATEMENTS.hold, [owner ?? tenant]);
}

/** Returns the number of active keys of an owner, counted up to `most`. */
export async function countActiveKeys(q: Queryable, tenant: TenantId, owner: KeyOwner, most: number): Promise<number> {
  const rows =
    owner === null
      ? await runPrepared<{ active: number }>(q, STATEMENTS.countOfTenant, [tenant, most])
      : await runPrepared<{ active: number }>(q, STATEMENTS.countOfUser, [owner, tenant, most]);
  return rows[0]?.active ?? 0;
}

/**
 * Returns the milliseconds until an owner may get another new key, with at most `most` new keys within `withinMs`.
 * @param since the least id of a key that is created at the beginning of that period
 */
export async function newKeyDelayMs(
  q: Queryable,
  tenant: TenantId,
  owner: KeyOwner,
  { most, withinMs, since }: { readonly most: number; readonly withinMs: number; readonly since: KeyId },
): Promise<number> {
  const [oldest] = await runPrepared<{ wait_ms: number }>(
    q,
    owner === null ? STATEMENTS.newOfTenant : STATEMENTS.newOfUser,
    [tenant, owner ?? tenant, since, most - 1, withinMs],
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

/** A row to insert. The database holds the digest of the secret and returns it to no list. */
export type NewKeyRow = Omit<KeyRow, 'revoked_at' | 'last_used_at' | 'created_at' | 'updated_at'> & {
  readonly digest: KeyDigest;
  readonly at: DatabaseTime;
};

/** Inserts a key; undefined if a key with the same digest exists. */
export async function insertNewKey(q: Queryable, { digest, at, ...columns }: NewKeyRow): Promise<KeyRow | undefined> {
  const names = Object.keys(columns);
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `insert into api_keys (${names.join(', ')}, digest, created_at, updated_at)
     values (${names.map((name) => `:${name}`).join(', ')}, decode(:digest, 'hex'), :at, :at)
     on conflict (digest) do nothing returning ${COLUMNS}`,
    { ...columns, digest, at: at.text },
  );
  return rows[0];
}

/** Inserts a key with a new secret. */
export async function insertKey(q: Queryable, key: NewKeyRow): Promise<KeyRow> {
  return written(await insertNewKey(q, key));
}

type KeyRef = Pick<KeyRow, 'id' | 'tenant_id'>;

/** Changes a locked key. Its tenant, owner and secret stay as they are. */
export async function replaceColumns(
  q: Queryable,
  { id, tenant_id }: KeyRef,
  columns: RequestedColumns & Pick<KeyRow, 'expires_at'>,
): Promise<KeyRow> {
  const set = Object.keys(columns).map((name) => `${name} = :${name}`);
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `update api_keys set ${set.join(', ')}, updated_at = clock_timestamp() where tenant_id = :tenant_id and id = :id
     returning ${COLUMNS}`,
    { ...columns, id, tenant_id },
  );
  return written(rows[0]);
}

export interface KeySecret {
  readonly digest: KeyDigest;
  readonly prefix: string;
  readonly lastFour: string;
}

/** Gives a locked key a new secret. The old one works until `previousUntil`; null = it stops working at once. */
export async function replaceSecret(
  q: Queryable,
  { id, tenant_id }: KeyRef,
  secret: KeySecret,
  previousUntil: Date | null,
): Promise<KeyRow> {
  await rememberDigest(q, id, previousUntil);
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `update api_keys set digest = decode(:digest, 'hex'), prefix = :prefix, last_four = :lastFour, imported = false,
       previous_digest = case when cast(:previousUntil as timestamptz) is null then null else digest end,
       previous_until = :previousUntil, updated_at = clock_timestamp()
     where tenant_id = :tenant_id and id = :id returning ${COLUMNS}`,
    { tenant_id, id, ...secret, previousUntil },
  );
  return written(rows[0]);
}

/** Revokes a locked key that is not revoked. The previous digest of a rotation stops working as well. */
export async function markRevoked(q: Queryable, { id, tenant_id }: KeyRef): Promise<KeyRow> {
  return written((await revokeKeys(q, tenant_id, [id]))[0]);
}

function written(row: KeyRow | undefined): KeyRow {
  if (row === undefined) throw new Fault('a statement returned no row for a key that it writes');
  return row;
}

/** Revokes those of the keys that are not revoked, and returns them as they are then, by id. */
export async function revokeKeys(q: Queryable, tenant: TenantId, ids: readonly KeyId[]): Promise<readonly KeyRow[]> {
  const { rows } = await q.raw<{ rows: KeyRow[] }>(
    `with revoked as (
       update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
       where tenant_id = :tenant and id = any(cast(:ids as text[])) and revoked_at is null returning ${COLUMNS}
     )
     select ${COLUMNS} from revoked order by id`,
    { tenant, ids },
  );
  return rows;
}

/**
 * Revokes the keys of an owner that is deleted, and returns their ids. Expired keys stay as they are: without their owner they never work
 * again, and an owner may have any number of them.
 */
export async function revokeKeysOfUser(q: Queryable, tenant: TenantId, userId: UserId): Promise<readonly KeyId[]> {
  const { rows } = await q.raw<{ rows: Pick<KeyRow, 'id'>[] }>(
    `update api_keys set revoked_at = clock_timestamp(), updated_at = clock_timestamp()
     where tenant_id = :tenant and user_id = :userId and ${ACTIVE_NOW} returning id`,
    { tenant, userId },
  );
  return rows.map(({ id }) => id);
}

/** What an explanation needs to look at a key as if it had been shown. */
export async function keyDigest(q: Queryable, scope: TenantScope, id: KeyId): Promise<KeyDigest | undefined> {
  const { rows } = await q.raw<{ rows: { digest: string }[] }>(
    `select encode(digest, 'hex') as digest from api_keys where ${scopeCondition(scope, 'tenant_id')} and id = :id`,
    { ...scopeBinding(scope), id },
  );
  return rows[0] && parseKeyDigest(rows[0].digest);
}
