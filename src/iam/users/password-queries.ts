/**
 * The hashes of passwords, and the one-time tokens that set a password. Passwords and tokens themselves are stored
 * nowhere.
 */

import { type KeyId, parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { type Queryable, writtenRow } from '../../store/queryable.ts';
import type { UserRow, UserTable } from './entity.ts';

/** A user with its password's hash and the conditions of a login. */
export interface PasswordUser extends Pick<UserRow, 'id' | 'tenant_id' | 'email' | 'name'> {
  readonly active: boolean;
  /** False while the tenant is suspended or deleted. */
  readonly tenant_active: boolean;
  /** True if a directory manages the password. */
  readonly of_directory: boolean;
  /** Null for a user that has never set a password, and for users of a directory. */
  readonly password_hash: string | null;
  /** Differs after each change of the password. Another hash of the same password is no change. */
  readonly password_version: string;
}

/** SQL for `password_version`. */
export const PASSWORD_VERSION = `coalesce(cast(extract(epoch from password_changed_at) as text), '')`;

/** SQL for PasswordUser. The caller appends conditions on `u` and `t`. */
export const PASSWORD_USER = `select u.id, u.tenant_id, u.email, u.name, u.status = 'active' as active,
    (t.status = 'active' and t.deleted_at is null) as tenant_active, u.source <> 'local' as of_directory,
    case when u.source = 'local' then u.password_hash end as password_hash, ${PASSWORD_VERSION} as password_version
  from users u join tenants t on t.id = u.tenant_id`;

/** Email addresses are unique across the platform and stored in lower case. */
export async function passwordUserByEmail(q: Queryable, email: string): Promise<PasswordUser | undefined> {
  const { rows } = await q.raw<{ rows: PasswordUser[] }>(`${PASSWORD_USER} where u.email = :email`, { email });
  return rows[0];
}

export async function passwordUserById(q: Queryable, id: UserId): Promise<PasswordUser | undefined> {
  const { rows } = await q.raw<{ rows: PasswordUser[] }>(`${PASSWORD_USER} where u.id = :id`, { id });
  return rows[0];
}

const users = (q: Queryable) => q<UserTable>('users');

/** Replaces a hash by another of the same password, unless the password was changed since the hash was read. */
export async function upgradeHash(q: Queryable, id: UserId, from: string, to: string): Promise<void> {
  await users(q).where({ id, password_hash: from }).update({ password_hash: to });
}

/** Changes a password. @returns false if the checked password is no longer the user's, or the user is deactivated */
export async function replacePassword(q: Queryable, id: UserId, version: string, to: string): Promise<boolean> {
  const changed = users(q).where({ id, status: 'active' }).whereRaw(`${PASSWORD_VERSION} = :version`, { version });
  return (await changed.update(newPassword(q, to))) === 1;
}

/** Sets the password of a local, active user. @returns false if there is no such user */
export async function setPassword(q: Queryable, id: UserId, to: string): Promise<boolean> {
  return (await users(q).where({ id, source: 'local', status: 'active' }).update(newPassword(q, to))) === 1;
}

function newPassword(q: Queryable, hash: string) {
  const now = q.raw('clock_timestamp()');
  return { password_hash: hash, password_changed_at: now, updated_at: now };
}

/** The lifetime of a one-time token. */
const PASSWORD_SETUP_MS = 60 * 60 * 1000;

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

interface TokenTable {
  readonly digest: Uint8Array;
  readonly user_id: UserId;
  readonly purpose: 'password_setup';
  readonly expires_at: Date;
  readonly maker_kind: TokenMaker['kind'] | null;
  readonly maker_tenant_id: TenantId | null;
  readonly maker_id: UserId | KeyId | null;
  readonly maker_address: string | null;
}

const tokens = (q: Queryable) => q<TokenTable>('one_time_tokens');

/** Stores the digest of a one-time token and removes the user's other tokens. Returns the expiry of the token. */
export async function putPasswordSetup(
  q: Queryable,
  userId: UserId,
  digest: Uint8Array,
  maker: TokenMaker,
): Promise<Date> {
  const byCaller = maker.kind === 'system' ? undefined : maker;
  await discardPasswordSetups(q, [userId]);
  const written = await tokens(q)
    .insert({
      digest,
      user_id: userId,
      purpose: 'password_setup',
      expires_at: q.raw(`clock_timestamp() + ? * interval '1 millisecond'`, [PASSWORD_SETUP_MS]),
      maker_kind: maker.kind,
      maker_tenant_id: byCaller?.tenantId ?? null,
      maker_id: byCaller?.id ?? null,
      maker_address: byCaller?.address ?? null,
    })
    .returning('expires_at');
  return writtenRow(written).expires_at;
}

export async function discardPasswordSetups(q: Queryable, userIds: readonly UserId[]): Promise<void> {
  await tokens(q).whereIn('user_id', userIds).delete();
}

/** Removes a batch of expired one-time tokens. Returns their number. */
export async function prunePasswordSetups(q: Queryable, batch: number): Promise<number> {
  const expired = tokens(q).whereRaw('expires_at < statement_timestamp()').orderBy('expires_at').limit(batch);
  return tokens(q).whereIn('digest', expired.select('digest')).delete();
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

/** Finds a one-time token that is neither used nor expired. */
export async function findPasswordSetup(q: Queryable, digest: Uint8Array): Promise<PasswordSetup | undefined> {
  const { rows } = await q.raw<{ rows: (MakerColumns & { user_id: UserId; made_at_ms: number })[] }>(
    `select user_id, maker_kind, maker_tenant_id, maker_id, maker_address, (extract(epoch from made_at) * 1000)::float8 as made_at_ms
     from one_time_tokens where ${USABLE}`,
    { digest },
  );
  const [row] = rows;
  return row && { userId: row.user_id, maker: storedMaker(row), madeAtMs: row.made_at_ms };
}

type MakerColumns = Pick<TokenTable, 'maker_kind' | 'maker_tenant_id' | 'maker_id' | 'maker_address'>;

function storedMaker(row: MakerColumns): TokenMaker | undefined {
  const { maker_kind: kind, maker_tenant_id: tenantId, maker_id: id } = row;
  if (kind === 'system') return { kind };
  if (tenantId === null || id === null) return undefined;
  const origin = { tenantId, address: row.maker_address ?? undefined };
  const [user, key] = [parseId('usr', id), parseId('key', id)];
  if (kind === 'user' && user !== undefined) return { kind, id: user, ...origin };
  return kind === 'api_key' && key !== undefined ? { kind, id: key, ...origin } : undefined;
}

/** Uses a one-time token. @returns false if another request has used it first */
export async function usePasswordSetup(q: Queryable, digest: Uint8Array): Promise<boolean> {
  const result = await q.raw<{ rowCount: number }>(`delete from one_time_tokens where ${USABLE}`, { digest });
  return result.rowCount === 1;
}
