/** Statements on issuers. The state of fetched keys is in a table of its own, which key-queries.ts writes. */

import type { IssuerId, IssuerName, RoleName, TenantId } from '../../domain/ids.ts';
import type { IssuerKey, IssuerUsers, StoredEarlier } from '../../domain/records.ts';
import {
  type Page,
  type PageRows,
  pageWithinBytes,
  scopeBinding,
  scopeCondition,
  type TenantScope,
} from '../../store/paging.ts';
import { countUpTo } from '../../store/prepared.ts';
import { jsonb, type Queryable, writtenRow } from '../../store/queryable.ts';
import { type FilterConditions, filterConditions } from '../list/filters.ts';
import { columnsOf } from '../schema/entity.ts';
import { type IssuerFilter, type IssuerRow, type IssuerTable, issuer } from './entity.ts';

/** An issuer with the columns that no response shows, and the state of its keys. */
export interface StoredIssuer extends IssuerRow {
  readonly earlier: StoredEarlier | null;
  readonly users_since: Date | null;
  /** The number of keys, pasted or fetched. */
  readonly key_count: number;
  readonly kids: readonly string[];
  /** When the keys were last fetched. Null: never, or they are pasted. */
  readonly fetched_at: Date | null;
  /** Why the last attempt to fetch them failed. */
  readonly fetch_error: string | null;
}

const issuers = (q: Queryable) => q<IssuerTable>('issuers');

const KEYS = `coalesce(i.jwks->'keys', k.keys, '[]')`;

const ISSUER = `select ${columnsOf(issuer)
  .map((name) => `i.${name}`)
  .join(', ')}, i.earlier, i.users_since,
    octet_length(coalesce(i.jwks::text, '')) + octet_length(coalesce(i.ca, '')) + octet_length(coalesce(i.users::text, '')) as octets,
    jsonb_array_length(${KEYS}) as key_count,
    array(select key->>'kid' from jsonb_array_elements(${KEYS}) key where key->>'kid' is not null) as kids,
    k.fetched_at, k.error as fetch_error
  from issuers i left join issuer_keys k on k.issuer_id = i.id and i.jwks is null`;

const BY_NAME = 'name collate "C"';

/** SQL conditions on `issuers i`. */
const CONDITIONS: FilterConditions<IssuerFilter> = {
  q: `position(lower(:q) in lower(i.name || E'\\n' || i.issuer)) > 0`,
  enabled: 'i.enabled = :enabled',
};

function conditionsOf(scope: TenantScope, filter: IssuerFilter): string {
  return [scopeCondition(scope, 'i.tenant_id'), ...filterConditions(CONDITIONS, filter)].join(' and ');
}

/** Lists issuers by name, then tenant. */
export async function listIssuers(
  q: Queryable,
  scope: TenantScope,
  filter: IssuerFilter,
  page: Page,
): Promise<PageRows<StoredIssuer>> {
  const [name = '', tenant = ''] = page.after ?? [];
  const order = `i.name collate "C", i.tenant_id collate "C"`;
  const rows = `${ISSUER} where ${conditionsOf(scope, filter)} and (${order}) > (:name, :after) order by ${order} limit :take`;
  const sql = { rows, order: `${BY_NAME}, tenant_id collate "C"` };
  return pageWithinBytes(q, sql, { ...scopeBinding(scope), ...filter, name, after: tenant }, page);
}

export async function countIssuers(
  q: Queryable,
  scope: TenantScope,
  filter: IssuerFilter,
  most: number,
): Promise<number> {
  const sql = `select from issuers i where ${conditionsOf(scope, filter)}`;
  return countUpTo(q, { sql, bindings: { ...scopeBinding(scope), ...filter } }, most);
}

export async function findIssuer(q: Queryable, tenant: TenantId, id: IssuerId): Promise<StoredIssuer | undefined> {
  const { rows } = await q.raw<{ rows: StoredIssuer[] }>(`${ISSUER} where i.tenant_id = :tenant and i.id = :id`, {
    tenant,
    id,
  });
  return rows[0];
}

export interface IssuerRef {
  readonly id: IssuerId;
  readonly tenant_id: TenantId;
}

export async function issuersNamed(q: Queryable, name: IssuerName): Promise<readonly IssuerRef[]> {
  return issuers(q).where({ name }).orderBy('tenant_id').limit(1000).select('id', 'tenant_id');
}

/** The sealed secrets of clients, and their issuers, locked until the transaction ends. */
export async function lockSealedSecrets(
  trx: Queryable,
): Promise<readonly { readonly id: IssuerId; readonly sealed: Buffer }[]> {
  const { rows } = await trx.raw<{ rows: { id: IssuerId; sealed: Buffer }[] }>(
    'select id, sso_secret_sealed as sealed from issuers where sso_secret_sealed is not null order by id for update',
  );
  return rows;
}

/** Replaces a sealed secret. The same secret in another seal is no change of the issuer. */
export async function replaceSealedSecret(trx: Queryable, id: IssuerId, sealed: Buffer): Promise<void> {
  await trx('issuers').where({ id }).update({ sso_secret_sealed: sealed });
}

/**
 * Locks an issuer until the transaction ends. `update`: to change or delete it. `share`: so that it is neither changed
 * nor deleted while a key or a user is bound to it.
 */
export async function lockIssuer(
  q: Queryable,
  tenant: TenantId,
  id: IssuerId,
  mode: 'update' | 'share',
): Promise<void> {
  const row = issuers(q).where({ tenant_id: tenant, id }).select('id');
  await (mode === 'update' ? row.forUpdate() : row.forShare());
}

/** Returns the id of the enabled issuer of a value of `iss`, in any tenant. */
export async function enabledIssuerOf(q: Queryable, issuer: string): Promise<IssuerId | undefined> {
  return (await issuers(q).where({ issuer, enabled: true }).first('id'))?.id;
}

/**
 * Locks an issuer like `lockIssuer`, and reads it after that, so that it stays as it is read. The names of a tenant's
 * issuers are unique.
 */
export async function holdIssuerByName(
  q: Queryable,
  tenant: TenantId,
  name: IssuerName,
  mode: 'update' | 'share',
): Promise<StoredIssuer | undefined> {
  const [row] = await issuers(q).where({ tenant_id: tenant, name }).select('id');
  if (row === undefined) return undefined;
  await lockIssuer(q, tenant, row.id, mode);
  const issuer = await findIssuer(q, tenant, row.id);
  return issuer?.name === name ? issuer : undefined;
}

export async function countIssuersOf(q: Queryable, tenant: TenantId): Promise<number> {
  const { rows } = await q.raw<{ rows: { n: number }[] }>(
    'select count(*)::int as n from issuers where tenant_id = :tenant',
    { tenant },
  );
  return rows[0]?.n ?? 0;
}

/** The columns that requests and their consequences set. */
export interface IssuerColumns extends Omit<IssuerRow, 'id' | 'tenant_id' | 'created_at' | 'updated_at'> {
  readonly earlier: StoredEarlier | null;
  readonly users_since: Date | null;
  /** Null: when the issuer was made. */
  readonly value_since: Date | null;
  /** Undefined: the stored secret stays. */
  readonly sso_secret_sealed?: Buffer | null | undefined;
}

function written(q: Queryable, { sso_secret_sealed, ...columns }: Partial<IssuerColumns>): Record<string, unknown> {
  const json = new Set(['jwks', 'required_claims', 'users', 'sso', 'earlier']);
  const entries = Object.entries(columns).map(([name, value]) => [name, json.has(name) ? jsonb(q, value) : value]);
  return { ...Object.fromEntries(entries), ...(sso_secret_sealed === undefined ? {} : { sso_secret_sealed }) };
}

/**
 * Throws an error of the constraint `issuers_by_name` or `issuers_enabled_by_issuer` if the name or the value is taken.
 */
export async function insertIssuer(
  q: Queryable,
  { id, tenant_id, ...columns }: IssuerColumns & Pick<IssuerRow, 'id' | 'tenant_id'>,
): Promise<void> {
  await q('issuers').insert({ id, tenant_id, ...written(q, columns) });
}

/** Changes columns of a locked issuer. Throws like `insertIssuer`. */
export async function updateIssuerRow(q: Queryable, id: IssuerId, columns: Partial<IssuerColumns>): Promise<void> {
  await q('issuers')
    .where({ id })
    .update({ ...written(q, columns), updated_at: q.raw('clock_timestamp()') });
}

export async function deleteIssuerRow(q: Queryable, id: IssuerId): Promise<void> {
  await issuers(q).where({ id }).delete();
}

/** Returns the fetched keys of an issuer. Empty: never fetched. */
export async function fetchedKeys(q: Queryable, id: IssuerId): Promise<readonly IssuerKey[]> {
  const row = await q<{ issuer_id: IssuerId; keys: readonly IssuerKey[] | null }>('issuer_keys')
    .where({ issuer_id: id })
    .first('keys');
  return row?.keys ?? [];
}

/** Returns the issuers of a tenant whose mapping names a role, by name. */
export async function issuersMapping(
  q: Queryable,
  tenant: TenantId,
  role: RoleName,
): Promise<readonly { readonly id: IssuerId; readonly name: IssuerName; readonly users: IssuerUsers }[]> {
  const { rows } = await q.raw<{ rows: { id: IssuerId; name: IssuerName; users: IssuerUsers }[] }>(
    `select id, name, users from issuers
     where tenant_id = :tenant and users is not null
       and (users->'default_roles' @> to_jsonb(cast(:role as text))
         or exists (select from jsonb_array_elements(users->'roles') rule where rule->'roles' @> to_jsonb(cast(:role as text))))
     order by name collate "C"`,
    { tenant, role },
  );
  return rows;
}

/** Returns a row that was just written. */
export async function writtenIssuer(q: Queryable, tenant: TenantId, id: IssuerId): Promise<StoredIssuer> {
  const row = await findIssuer(q, tenant, id);
  return writtenRow(row === undefined ? [] : [row]);
}
