/** Reads and writes API keys. Lists and searches are in list-queries.ts. */

import type { Knex } from 'knex';
import {
  type IssuerId,
  type KeyDigest,
  type KeyId,
  parseKeyDigest,
  type TenantId,
  type UserId,
} from '../../domain/ids.ts';
import type { ClaimRule } from '../../domain/records.ts';
import type { makeApiKey } from '../../identity/api-keys.ts';
import { scopeBinding, scopeCondition, type TenantScope, within } from '../../store/paging.ts';
import { jsonb, type Queryable, writtenRow } from '../../store/queryable.ts';
import type { DatabaseTime } from '../../store/time.ts';
import { rememberDigest } from '../explain/ended-queries.ts';
import { columnsOf } from '../schema/entity.ts';
import { apiKey, type KeyRow, type KeyTable } from './entity.ts';
import type { RequestedColumns } from './request.ts';

const COLUMNS = columnsOf(apiKey);

/** Returns SQL for the proof of a key; null for a key with a secret. @param keys `api_keys` or its alias */
export function proofSql(keys: string): string {
  const equal = ['proof_issuer_id', 'proof_subject', 'proof_claims'].map((name) => `o.${name} = ${keys}.${name}`);
  return `case when ${keys}.proof_issuer_id is not null then (
    select jsonb_build_object('issuer', i.name, 'subject', ${keys}.proof_subject, 'claims', ${keys}.proof_claims)
      || case when not ${keys}.revoked and exists (
        select from api_keys o where ${equal.join(' and ')} and o.id <> ${keys}.id and not o.revoked
      ) then jsonb_build_object('ambiguous', true) else '{}' end
    from issuers i where i.id = ${keys}.proof_issuer_id
  ) end as proof`;
}

/** The columns of KeyRow in a statement on `api_keys`. */
export const keyRowColumns = (q: Queryable) => [...COLUMNS, q.raw(proofSql('api_keys'))];

export type KeyRef = Pick<KeyRow, 'id' | 'tenant_id'>;

const keys = (q: Queryable) => q<KeyTable>('api_keys');

export async function findKey(q: Queryable, tenant: TenantId, id: KeyId): Promise<KeyRow | undefined> {
  return keys(q).where({ tenant_id: tenant, id }).first(keyRowColumns(q));
}

/** Locks the key until the transaction ends: `share` against changes, `update` against every other lock. */
export async function lockKey(
  q: Queryable,
  tenant: TenantId,
  id: KeyId,
  mode: 'update' | 'share',
): Promise<KeyRow | undefined> {
  const key = keys(q).where({ tenant_id: tenant, id });
  return (mode === 'update' ? key.forUpdate() : key.forShare()).first(keyRowColumns(q));
}

/** Returns the digest of a key in the scope, for an explanation that evaluates the key as if a client had sent it. */
export async function keyDigest(q: Queryable, scope: TenantScope, id: KeyId): Promise<KeyDigest | undefined> {
  const row = await keys(q).where({ id }).modify(within(scope)).first('digest');
  return row && parseKeyDigest(row.digest.toString('hex'));
}

/**
 * Returns the ids of keys in the scope with this shown prefix or this name, at most `take`. The names are found by the
 * index of lexemes.
 */
export async function keyIdsNamed(
  q: Queryable,
  scope: TenantScope,
  text: string,
  take: number,
): Promise<readonly KeyId[]> {
  const inScope = scopeCondition(scope, 'k.tenant_id');
  const { rows } = await q.raw<{ rows: Pick<KeyRow, 'id'>[] }>(
    `select id from (
       (select k.id from api_keys k where k.prefix collate "C" = :text and ${inScope} limit :take)
       union
       (select k.id from api_keys k
        where user_lexemes(k.tenant_id, coalesce(k.user_id, ''), '{}', k.search_text)
            @@ (select user_query(cast(:tenantMark as text), null, null, lower(cast(:text as text))))
          and (k.name = :text) is true and (${inScope}) is true limit :take)
     ) named limit :take`,
    { ...scopeBinding(scope), tenantMark: scopeBinding(scope).tenant ?? null, text, take },
  );
  return rows.map(({ id }) => id);
}

/**
 * Returns the keys that these digests belong to, now or in the grace period of a rotation. Locks the keys until the
 * transaction ends, so that no rotation moves a digest.
 */
export async function shareKeysOfDigests(
  q: Queryable,
  digests: readonly KeyDigest[],
): Promise<ReadonlyMap<KeyDigest, KeyRef>> {
  const values = digests.map(bytesOf);
  const rows = await keys(q)
    .whereIn('digest', values)
    .orWhereIn('previous_digest', values)
    .orderByRaw('id collate "C"')
    .forShare()
    .select('id', 'tenant_id', 'digest', 'previous_digest');
  return new Map(
    rows.flatMap(({ digest, previous_digest: previous, ...key }) =>
      [digest, previous].flatMap((bytes) => {
        const found = bytes === null ? undefined : parseKeyDigest(bytes.toString('hex'));
        return found === undefined ? [] : [[found, key] as const];
      }),
    ),
  );
}

function bytesOf(digest: KeyDigest): Buffer {
  return Buffer.from(digest, 'hex');
}

/** A row to insert. Lists return neither the secret nor its digest. */
export type NewKeyRow = Omit<
  KeyRow,
  'proof' | 'revoked_at' | 'disabled_at' | 'last_used_at' | 'created_at' | 'updated_at'
> & {
  readonly digest: KeyDigest;
  /** Default: the key has a secret. */
  readonly proof?: StoredProof | undefined;
  readonly at: DatabaseTime;
};

/** Rows of one INSERT statement, so that each stays within the time limit of a statement. */
const INSERTED_TOGETHER = 100;

/** Inserts keys, and returns them without those whose digest exists. */
export async function insertNewKeys(q: Queryable, added: readonly NewKeyRow[]): Promise<readonly KeyRow[]> {
  const inserted: KeyRow[] = [];
  for (let from = 0; from < added.length; from += INSERTED_TOGETHER) {
    const rows = added.slice(from, from + INSERTED_TOGETHER).map(({ digest, at, proof, rate_limits, ...columns }) => {
      const time = q.raw('cast(? as timestamptz)', [at.text]);
      return {
        ...columns,
        ...proofColumns(proof),
        rate_limits: jsonb(q, rate_limits),
        digest: bytesOf(digest),
        created_at: time,
        updated_at: time,
      };
    });
    inserted.push(...(await keys(q).insert(rows).onConflict('digest').ignore().returning<KeyRow[]>(keyRowColumns(q))));
  }
  return inserted;
}

export async function insertKey(q: Queryable, key: NewKeyRow): Promise<KeyRow> {
  return writtenRow(await insertNewKeys(q, [key]));
}

/** The tokens that prove a key, in the stored form. */
export interface StoredProof {
  readonly issuerId: IssuerId;
  readonly subject: string;
  readonly isGlob: boolean;
  readonly claims: readonly ClaimRule[];
}

function proofColumns(proof: StoredProof | undefined) {
  if (proof === undefined) return {};
  const { issuerId, subject, isGlob, claims } = proof;
  return {
    ...{ proof_issuer_id: issuerId, proof_subject: subject, proof_is_glob: isGlob },
    proof_claims: JSON.stringify(claims),
  };
}

/**
 * Changes a locked key. Its tenant, owner and secret stay as they are.
 * @param proof undefined: it stays as it is
 */
export async function replaceColumns(
  q: Queryable,
  key: KeyRef,
  { rate_limits, ...columns }: RequestedColumns & Pick<KeyRow, 'expires_at'>,
  proof?: StoredProof,
): Promise<KeyRow> {
  return updateKey(q, key, { ...columns, ...proofColumns(proof), rate_limits: jsonb(q, rate_limits) });
}

/** Gives a locked key a new secret. The old one works until `previousUntil`; null = it stops working at once. */
export async function replaceSecret(
  q: Queryable,
  key: KeyRef,
  { digest, prefix, lastFour }: ReturnType<typeof makeApiKey>,
  previousUntil: Date | null,
): Promise<KeyRow> {
  await rememberDigest(q, key.id, previousUntil);
  return updateKey(q, key, {
    digest: bytesOf(digest),
    prefix,
    last_four: lastFour,
    imported: false,
    previous_digest: previousUntil === null ? null : q.raw('digest'),
    previous_until: previousUntil,
  });
}

/** Disables a locked key, or enables it. */
export async function setKeyDisabled(q: Queryable, key: KeyRef, disabled: boolean): Promise<KeyRow> {
  return updateKey(q, key, { disabled_at: disabled ? q.raw('clock_timestamp()') : null });
}

type WrittenColumns = { readonly [Name in keyof KeyTable]?: KeyTable[Name] | Knex.Raw };

async function updateKey(q: Queryable, { id, tenant_id }: KeyRef, columns: WrittenColumns): Promise<KeyRow> {
  const rows = await keys(q)
    .where({ tenant_id, id })
    .update({ ...columns, updated_at: q.raw('clock_timestamp()') })
    .returning<KeyRow[]>(keyRowColumns(q));
  return writtenRow(rows);
}

/** Revokes a locked key that is not revoked. The previous digest of a rotation stops working as well. */
export async function markRevoked(q: Queryable, { id, tenant_id }: KeyRef): Promise<KeyRow> {
  return writtenRow(await revokeKeys(q, tenant_id, [id]));
}

/** Revokes those of the keys that are not revoked, and returns them after the change, by id. */
export async function revokeKeys(q: Queryable, tenant: TenantId, ids: readonly KeyId[]): Promise<readonly KeyRow[]> {
  const revoked = await keys(q)
    .where({ tenant_id: tenant, revoked_at: null })
    .whereIn('id', ids)
    .update({ revoked_at: q.raw('clock_timestamp()'), updated_at: q.raw('clock_timestamp()') })
    .returning<KeyRow[]>(keyRowColumns(q));
  return revoked.toSorted((left, right) => (left.id < right.id ? -1 : 1));
}

/** The keys that are neither revoked nor expired, disabled or not. `expiry_month` finds them in an index. */
export const ACTIVE_NOW = `not revoked and expiry_month >= expiry_month_of(statement_timestamp())
  and (expires_at is null or expires_at > statement_timestamp())`;

/**
 * Revokes the keys of an owner that is deleted, and returns their ids. Expired keys stay as they are: without their
 * owner they never work again, and an owner may have any number of them.
 */
export async function revokeKeysOfUser(q: Queryable, tenant: TenantId, userId: UserId): Promise<readonly KeyId[]> {
  const revoked = await keys(q)
    .where({ tenant_id: tenant, user_id: userId })
    .whereRaw(ACTIVE_NOW)
    .update({ revoked_at: q.raw('clock_timestamp()'), updated_at: q.raw('clock_timestamp()') })
    .returning('id');
  await q('key_counts').where({ owner: userId }).delete();
  return revoked.map(({ id }) => id);
}

/**
 * Removes a batch of keys that were revoked, or have expired, longer ago than `keepMs`, the longest first, with the
 * records of their uses. Returns their number.
 */
export async function pruneEndedKeys(q: Queryable, keepMs: number, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `with gone as (
       delete from api_keys where id in (
         select id from api_keys where least(revoked_at, expires_at) < statement_timestamp() - :keepMs * interval '1 millisecond'
         order by least(revoked_at, expires_at) limit :batch for update skip locked)
       returning id
     ), uses as (
       delete from key_permissions_used where key_id in (select id from gone)
     )
     select from gone`,
    { keepMs, batch },
  );
  return rowCount;
}
