/** What proves a local user: the password's hash and the one-time tokens that let one be set. Never a password itself. */

import { Fault } from '../../domain/errors.ts';
import type { KeyId, TenantId, UserId } from '../../domain/ids.ts';
import { storedKey, storedTenant, storedUser } from '../../store/paging.ts';
import { type Prepared, runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';

export interface PasswordUser {
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly email: string | undefined;
  readonly name: string;
  readonly active: boolean;
  /** False while the tenant is suspended, or deleted. */
  readonly tenantActive: boolean;
  /** The password is kept by a directory. */
  readonly ofDirectory: boolean;
  /** Undefined for a user who never set a password, and for users of a directory. */
  readonly passwordHash: string | undefined;
  /** Another one after each change of the password; hashing the same password anew is none. */
  readonly passwordVersion: string;
}

/** A user as `PASSWORD_USER` gives it. */
export interface PasswordRow {
  readonly id: string;
  readonly tenant_id: string;
  readonly email: string | null;
  readonly name: string;
  readonly active: boolean;
  readonly tenant_active: boolean;
  readonly of_directory: boolean;
  readonly password_hash: string | null;
  readonly password_version: string;
}

/** SQL for `passwordVersion`. */
export const PASSWORD_VERSION = `coalesce(cast(extract(epoch from password_changed_at) as text), '')`;

/** Users as PasswordRow; what follows narrows `u` and `t`. */
export const PASSWORD_USER = `select u.id, u.tenant_id, u.email, u.name, u.status = 'active' as active,
    (t.status = 'active' and t.deleted_at is null) as tenant_active, u.source <> 'local' as of_directory,
    case when u.source = 'local' then u.password_hash end as password_hash, ${PASSWORD_VERSION} as password_version
  from users u join tenants t on t.id = u.tenant_id`;

export function toPasswordUser(row: PasswordRow): PasswordUser {
  return {
    id: storedUser(row.id),
    tenantId: storedTenant(row.tenant_id),
    email: row.email ?? undefined,
    name: row.name,
    active: row.active,
    tenantActive: row.tenant_active,
    ofDirectory: row.of_directory,
    passwordHash: row.password_hash ?? undefined,
    passwordVersion: row.password_version,
  };
}

const BY_EMAIL = { name: 'password_user_by_email', text: `${PASSWORD_USER} where u.email = $1` };

/** By e-mail, which is unique across the platform and stored in lower case. */
export async function passwordUserByEmail(q: Queryable, email: string): Promise<PasswordUser | undefined> {
  const [row] = await runPrepared<PasswordRow>(q, BY_EMAIL, [email]);
  return row && toPasswordUser(row);
}

export async function passwordUserById(q: Queryable, id: UserId): Promise<PasswordUser | undefined> {
  const result = await q.raw<{ rows: PasswordRow[] }>(`${PASSWORD_USER} where u.id = :id`, { id });
  const [row] = result.rows;
  return row && toPasswordUser(row);
}

/** Replaces a hash by another of the same password; nothing happens when the password was changed meanwhile. */
export async function upgradeHash(q: Queryable, id: UserId, from: string, to: string): Promise<void> {
  await q.raw('update users set password_hash = :to where id = :id and password_hash = :from', { id, from, to });
}

/** Changes a password; false when the one that was checked is no longer the user's, or the user is deactivated. */
export async function replacePassword(q: Queryable, id: UserId, version: string, to: string): Promise<boolean> {
  const result = await q.raw<{ rowCount: number }>(
    `update users set password_hash = :to, password_changed_at = clock_timestamp(), updated_at = clock_timestamp()
     where id = :id and ${PASSWORD_VERSION} = :version and status = 'active'`,
    { id, version, to },
  );
  return result.rowCount === 1;
}

/** Sets a local, active user's password, whatever it was; false when there is no such user. */
export async function setPassword(q: Queryable, id: UserId, to: string): Promise<boolean> {
  const result = await q.raw<{ rowCount: number }>(
    `update users set password_hash = :to, password_changed_at = clock_timestamp(), updated_at = clock_timestamp()
     where id = :id and source = 'local' and status = 'active'`,
    { id, to },
  );
  return result.rowCount === 1;
}

/** How long a token that lets a password be set is good for. */
export const PASSWORD_SETUP_MS = 60 * 60 * 1000;

/** The principal that had a one-time token made, for which the token acts. */
export type TokenMaker =
  | (MakerOrigin & { readonly kind: 'user'; readonly id: UserId })
  | (MakerOrigin & { readonly kind: 'api_key'; readonly id: KeyId })
  /** The command line, which may do everything. */
  | { readonly kind: 'system' };

interface MakerOrigin {
  /** The maker's own tenant. */
  readonly tenantId: TenantId;
  /** The client address of the maker's request; undefined = missing. */
  readonly address: string | undefined;
}

/** Values for the columns maker_kind, maker_tenant_id, maker_id and maker_address. */
export function makerColumns(maker: TokenMaker): readonly (string | null)[] {
  return maker.kind === 'system'
    ? [maker.kind, null, null, null]
    : [maker.kind, maker.tenantId, maker.id, maker.address ?? null];
}

const PUT_PASSWORD_SETUP: Prepared = {
  name: 'put_password_setup',
  text: `with gone as (delete from one_time_tokens where user_id = $2)
    insert into one_time_tokens (digest, user_id, purpose, expires_at, maker_kind, maker_tenant_id, maker_id, maker_address)
    values ($1, $2, 'password_setup', clock_timestamp() + $3::float8 * interval '1 millisecond', $4, $5, $6, $7)
    returning floor(extract(epoch from expires_at) * 1000)::float8 as expires_ms`,
};

/**
 * Stores the digest of a one-time token and removes the user's other tokens. Returns the expiry of the token, in milliseconds since the
 * epoch.
 */
export async function putPasswordSetup(
  q: Queryable,
  userId: UserId,
  digest: Uint8Array,
  maker: TokenMaker,
): Promise<number> {
  const values = [digest, userId, PASSWORD_SETUP_MS, ...makerColumns(maker)];
  const [row] = await runPrepared<{ expires_ms: number }>(q, PUT_PASSWORD_SETUP, values);
  if (row === undefined) throw new Fault('a one-time token was not stored');
  return row.expires_ms;
}

export async function discardPasswordSetups(q: Queryable, userId: UserId): Promise<void> {
  await q.raw('delete from one_time_tokens where user_id = :userId', { userId });
}

/** Takes away a batch of one-time tokens past their time; answers how many. */
export async function prunePasswordSetups(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from one_time_tokens where digest in
       (select digest from one_time_tokens where expires_at < statement_timestamp() order by expires_at limit :batch)`,
    { batch },
  );
  return rowCount;
}

const USABLE = `digest = :digest and purpose = 'password_setup' and used_at is null and expires_at > clock_timestamp()`;

/** A one-time token that is neither used nor expired. */
export interface PasswordSetup {
  /** The user whose password it sets. */
  readonly userId: UserId;
  /** Undefined = the token names no maker. */
  readonly maker: TokenMaker | undefined;
  /** Milliseconds since the epoch. */
  readonly madeAtMs: number;
}

interface PasswordSetupRow {
  readonly user_id: string;
  readonly maker_kind: TokenMaker['kind'] | null;
  readonly maker_tenant_id: string | null;
  readonly maker_id: string | null;
  readonly maker_address: string | null;
  readonly made_at_ms: number;
}

/** Finds a one-time token that is neither used nor expired. */
export async function findPasswordSetup(q: Queryable, digest: Uint8Array): Promise<PasswordSetup | undefined> {
  const { rows } = await q.raw<{ rows: PasswordSetupRow[] }>(
    `select user_id, maker_kind, maker_tenant_id, maker_id, maker_address, (extract(epoch from made_at) * 1000)::float8 as made_at_ms
     from one_time_tokens where ${USABLE}`,
    { digest },
  );
  const [row] = rows;
  return row && { userId: storedUser(row.user_id), maker: storedMaker(row), madeAtMs: row.made_at_ms };
}

function storedMaker(row: PasswordSetupRow): TokenMaker | undefined {
  const { maker_kind: kind, maker_tenant_id: tenant, maker_id: id } = row;
  if (kind === 'system') return { kind };
  if (kind === null || tenant === null || id === null) return undefined;
  const origin = { tenantId: storedTenant(tenant), address: row.maker_address ?? undefined };
  return kind === 'user' ? { kind, id: storedUser(id), ...origin } : { kind, id: storedKey(id), ...origin };
}

/** Uses a one-time token up; false when somebody was faster. */
export async function usePasswordSetup(q: Queryable, digest: Uint8Array): Promise<boolean> {
  const result = await q.raw<{ rowCount: number }>(`delete from one_time_tokens where ${USABLE}`, { digest });
  return result.rowCount === 1;
}
