/**
 * Counts of failed logins in the database, so that all replicas limit an attacker together. Subjects are stored as
 * SHA-256 digests, so the tables have no names. An attempt is counted before its password is checked, and returned when
 * it succeeds, so 1,000 concurrent attempts have no advantage over 1,000 sequential ones.
 *
 * Each attempt counts for three subjects: the pair of account and address, the account, and the address. Statements
 * lock their rows in this order, so that no two statements wait for each other.
 */

import type pg from 'pg';
import type { TenantId, UserId } from '../../domain/ids.ts';
import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import { PASSWORD_USER, type PasswordUser } from '../users/password-queries.ts';

/** In the order in which they are counted. */
export const FAILURE_SCOPES = ['pair', 'account', 'address'] as const;
export type FailureScope = (typeof FAILURE_SCOPES)[number];

/** How long an address stays known after a login of the account from it. */
const KNOWN_DAYS = 30;

/** The maximum number of known addresses of one account. No further address becomes known. */
const MAX_KNOWN_ADDRESSES = 100;

/**
 * SQL of the subject of failed logins of a user `u`. For a user of a directory: the username of the last login. Null if
 * that user never logged in.
 */
const ACCOUNT_OF_USER = `case when u.source = 'local' then user_account(u.id, u.email)
  else (select account from user_logins where user_id = u.id) end`;

/** SQL of the ids of all users whose account is locked now, for all addresses or for one. It reads only the locks. */
export const LOCKED_USERS = ['account', 'pair']
  .map((scope) => {
    const account = scope === 'pair' ? 'f.account' : 'f.subject';
    const inForce = `f.scope = '${scope}' and f.locked_until > statement_timestamp()`;
    return `select o.id from login_failures f join users o on user_account(o.id, o.email) = ${account} and o.source = 'local' where ${inForce}
    union all select l.user_id from login_failures f join user_logins l on l.account = ${account} where ${inForce}`;
  })
  .join(' union all ');

/** SQL of the end of the lock of a user `u`: the latest if several are in force, null without a lock. */
export const LOCKED_UNTIL = `select max(f.locked_until) from (select ${ACCOUNT_OF_USER} as account offset 0) a cross join lateral (
      select locked_until from login_failures where scope = 'account' and subject = a.account
      union all select locked_until from login_failures where scope = 'pair' and account = a.account
    ) f where f.locked_until > clock_timestamp()`;

interface FailureWindow {
  /** The maximum number of failures in a window. */
  readonly limit: number;
  readonly windowMs: number;
}

/**
 * Positions of values in a statement that counts attempts: each subject is followed by its limit and its window in
 * milliseconds.
 */
interface Places {
  readonly subject: number;
  readonly account: number;
  readonly address: number;
}

/**
 * Returns SQL that counts one attempt and returns a row if the subject is below its limit.
 * @param condition SQL that must be true as well
 */
function claimed(scope: FailureScope, places: Places, condition = 'true'): string {
  const limit = `$${places.subject + 1}::integer`;
  const length = `$${places.subject + 2}::float8 * interval '1 millisecond'`;
  const over = `f.window_start + ${length} <= excluded.window_start`;
  const account = scope === 'pair' ? `$${places.account}::bytea` : 'null';
  // The limit of an account does not apply to its known addresses. The attempt still counts for all others.
  const exempt = scope === 'account' ? ` or ${isKnown(places)}` : '';
  return `insert into login_failures as f (scope, subject, account, window_start, failures, max_failures, locked_until)
    select '${scope}', $${places.subject}::bytea, ${account}, now, 1, ${limit}, case when ${limit} = 1 then now + ${length} end
    from clock_timestamp() now where ${limit} > 0 and ${condition}
    on conflict (scope, subject) do update set
      failures = case when ${over} then 1 else f.failures + 1 end,
      window_start = case when ${over} then excluded.window_start else f.window_start end,
      max_failures = excluded.max_failures,
      locked_until = case
        when ${over} then excluded.locked_until
        when f.failures + 1 >= ${limit} then f.window_start + ${length}
      end
    where f.failures < ${limit} or ${over}${exempt}
    returning 1`;
}

function isKnown({ account, address }: Omit<Places, 'subject'>): string {
  return `exists (select from login_addresses where account = $${account}::bytea and address = $${address}::bytea
      and last_login_at > statement_timestamp() - interval '${KNOWN_DAYS} days')`;
}

/** The values of one subject's statement: subject, limit, window, account, address. */
const ONE = { subject: 1, account: 4, address: 5 };
const CLAIM = {
  pair: { name: 'claim_pair', text: claimed('pair', ONE, '$5::bytea is not null') },
  account: { name: 'claim_account', text: claimed('account', ONE) },
  address: { name: 'claim_address', text: claimed('address', ONE, '$4::bytea is not null and $5::bytea is not null') },
} as const;

/**
 * Parts of a `with` that count one attempt of each subject while the subjects before are below their limits. Each has a
 * row if it counted.
 */
const OF_ALL = { account: 4, address: 7 };
const ALL = `pair as (${claimed('pair', { subject: 1, ...OF_ALL })}),
  account as (${claimed('account', { subject: 4, ...OF_ALL }, 'exists (select from pair)')}),
  address as (${claimed('address', { subject: 7, ...OF_ALL }, 'exists (select from account)')})`;

/**
 * The commit does not wait for the disk. If PostgreSQL crashes, the counts of the last second may be lost, and each
 * login is faster.
 */
const CLAIMED = `exists (select from pair) as pair, exists (select from account) as account, exists (select from address) as address,
    set_config('synchronous_commit', 'off', true) as commits`;

const CLAIM_ALL = { name: 'claim_attempt', text: `with ${ALL} select ${CLAIMED}` };
const CLAIM_LOGIN = {
  name: 'claim_login',
  text: `with ${ALL} select ${CLAIMED}, found.*
    from (select) as once left join lateral (${PASSWORD_USER} where u.email = $10::text and exists (select from address)) found on true`,
};

/** The subjects of one attempt, as SHA-256 digests. */
export type LoginAttempt = Readonly<Record<FailureScope, Uint8Array>>;

export type AttemptWindows = Readonly<Record<FailureScope, FailureWindow>>;

/** Whether each subject was below its limit. If one was not, those after it were not counted. */
export type Claimed = Readonly<Record<FailureScope, boolean>>;

const NOT_CLAIMED: Claimed = { pair: false, account: false, address: false };

/**
 * Counts one attempt of one subject. The first attempt after the window's end starts a new window.
 * @returns true if the subject was below its limit
 */
export async function claimOne(
  q: Queryable,
  scope: FailureScope,
  attempt: LoginAttempt,
  window: FailureWindow,
): Promise<boolean> {
  const values = [attempt[scope], window.limit, window.windowMs, attempt.account, attempt.address];
  return (await runPrepared(q, CLAIM[scope], values)).length === 1;
}

/** Counts one attempt of all its subjects. */
export async function claimAttempt(q: Queryable, attempt: LoginAttempt, windows: AttemptWindows): Promise<Claimed> {
  const [row] = await runPrepared<Claimed & pg.QueryResultRow>(q, CLAIM_ALL, valuesOf(attempt, windows));
  return row ?? NOT_CLAIMED;
}

/**
 * Like `claimAttempt`, and looks the user up if all subjects were below their limits. @param email undefined: no user
 * has it
 */
export async function claimLogin(
  q: Queryable,
  attempt: LoginAttempt,
  windows: AttemptWindows,
  email: string | undefined,
): Promise<Claimed & { readonly user: PasswordUser | undefined }> {
  const [row] = await runPrepared<Claimed & { readonly [K in keyof PasswordUser]: PasswordUser[K] | null }>(
    q,
    CLAIM_LOGIN,
    [...valuesOf(attempt, windows), email ?? null],
  );
  const { pair, account, address } = row ?? NOT_CLAIMED;
  return { pair, account, address, user: isFound(row) ? row : undefined };
}

function isFound<R extends { readonly id: unknown }>(row: R | undefined): row is R & PasswordUser {
  return typeof row?.id === 'string';
}

function valuesOf(attempt: LoginAttempt, windows: AttemptWindows): readonly unknown[] {
  return FAILURE_SCOPES.flatMap((scope) => [attempt[scope], windows[scope].limit, windows[scope].windowMs]);
}

/** Returns the milliseconds until the subject's window ends; 0 without a window. */
export async function windowLeftMs(
  q: Queryable,
  scope: FailureScope,
  subject: Uint8Array,
  windowMs: number,
): Promise<number> {
  const result = await q.raw<{ rows: { left_ms: number }[] }>(
    `select ceil(extract(epoch from window_start - clock_timestamp()) * 1000 + :windowMs)::float8 as left_ms
     from login_failures where scope = :scope and subject = :subject`,
    { scope, subject, windowMs },
  );
  return Math.max(0, result.rows[0]?.left_ms ?? 0);
}

const NEW_LOCK = `locked_until > statement_timestamp() and announced_until is distinct from locked_until`;
const HAS_NEW_LOCK = {
  name: 'has_new_lock',
  text: `select exists (
    select from login_failures where (scope, subject) in (('pair', $1::bytea), ('account', $2::bytea)) and ${NEW_LOCK}
  ) as locked`,
};

/** Reports whether the account has a lock that the audit log does not have, for all addresses or for the attempt's. */
export async function hasNewLock(q: Queryable, { pair, account }: LoginAttempt): Promise<boolean> {
  const [row] = await runPrepared<{ locked: boolean }>(q, HAS_NEW_LOCK, [pair, account]);
  return row?.locked === true;
}

const marked = (scope: FailureScope, position: number, condition: string): string =>
  `update login_failures set announced_until = locked_until
    where scope = '${scope}' and subject = $${position}::bytea and ${NEW_LOCK} and ${condition} returning 1`;
const MARK_LOCK = {
  name: 'mark_lock',
  text: `with pair as (${marked('pair', 1, 'true')}), account as (${marked('account', 2, '(select count(*) from pair) >= 0')})
    select exists (select from pair) or exists (select from account) as marked`,
};

/** Marks the locks of `hasNewLock`. @returns false if another transaction has marked them */
export async function markLock(trx: Queryable, { pair, account }: LoginAttempt): Promise<boolean> {
  const [row] = await runPrepared<{ marked: boolean }>(trx, MARK_LOCK, [pair, account]);
  return row?.marked === true;
}

const USER_OF_ACCOUNT = {
  name: 'user_of_account',
  text: `select id, tenant_id from users where user_account(id, email) = $1::bytea and source = 'local'
    union all select u.id, u.tenant_id from user_logins l join users u on u.id = l.user_id where l.account = $1::bytea
    limit 1`,
};

/** Returns the user whose last login has the attempt's account, or whose email address is the account. */
export async function userOfAccount(
  q: Queryable,
  { account }: LoginAttempt,
): Promise<{ readonly id: UserId; readonly tenant_id: TenantId } | undefined> {
  const [user] = await runPrepared<{ id: UserId; tenant_id: TenantId }>(q, USER_OF_ACCOUNT, [account]);
  return user;
}

/**
 * SQL that takes one attempt back. Failures from known addresses can exceed the limit of an account, which then stays
 * locked.
 */
const ONE_LESS = `update login_failures set failures = failures - 1,
      locked_until = case when scope = 'account' and failures > max_failures then locked_until end`;

/** Takes back the attempt of one subject. */
export async function returnOne(q: Queryable, scope: FailureScope, { [scope]: subject }: LoginAttempt): Promise<void> {
  await q.raw(`${ONE_LESS} where scope = :scope and subject = :subject and failures > 0`, { scope, subject });
}

/**
 * Parts of a `with` for a successful attempt, if `source` has rows: they clear the failures of its pair, take back the
 * attempt of its account and its address, and make the address known to the account.
 * @param first the position of the pair; the account's and the address's follow
 */
export function forgivenBy(source: string, first: number): string {
  return `cleared as (
      delete from login_failures where scope = 'pair' and subject = $${first}::bytea and exists (select from ${source}) returning 1
    ), ${oneLess('account', first + 1, source, 'cleared')}, ${oneLess('address', first + 2, source, 'account_returned')}`;
}

/**
 * Parts of a `with` that take one attempt back from all its subjects, if `source` has rows.
 * @param first the position of the pair; the account's and the address's follow
 */
export function returnedBy(source: string, first: number): string {
  return `${oneLess('pair', first, source)}, ${oneLess('account', first + 1, source, 'pair_returned')},
    ${oneLess('address', first + 2, source, 'account_returned')}`;
}

/** @param after the preceding part, which runs first */
function oneLess(scope: FailureScope, place: number, source: string, after?: string): string {
  const inOrder = after === undefined ? '' : ` and (select count(*) from ${after}) >= 0`;
  return `${scope}_returned as (${ONE_LESS}
      where scope = '${scope}' and subject = $${place}::bytea and failures > 0 and exists (select from ${source})${inOrder} returning 1)`;
}

/**
 * A part of a `with` that makes the address of a login known to its account, if `source` has rows.
 * @param first the position of the account; the address's follows
 */
export function knownBy(source: string, first: number): string {
  const [account, address] = [`$${first}::bytea`, `$${first + 1}::bytea`];
  return `known as (
      insert into login_addresses as k (account, address, last_login_at)
      select ${account}, ${address}, clock_timestamp() from ${source}
      where exists (select from login_addresses where account = ${account} and address = ${address})
        or (select count(*) from (select from login_addresses where account = ${account} limit ${MAX_KNOWN_ADDRESSES}) n) < ${MAX_KNOWN_ADDRESSES}
      on conflict (account, address) do update set last_login_at = greatest(k.last_login_at, excluded.last_login_at)
    )`;
}

const RETURN = { name: 'return_attempt', text: `with ${returnedBy('(select) as once', 1)} select` };

/**
 * Takes one attempt back from all its subjects, because it was no failure. One statement, because all clients at one
 * address share its row, and a transaction would hold the row longer.
 */
export async function returnAttempt(q: Queryable, { pair, account, address }: LoginAttempt): Promise<void> {
  await runPrepared(q, RETURN, [pair, account, address]);
}

const FORGIVE = { name: 'forgive_attempt', text: `with ${forgivenBy('(select) as once', 1)} select` };

/** Clears the failures of the attempt's pair, and takes the attempt back from its account and its address. */
export async function forgiveAttempt(q: Queryable, { pair, account, address }: LoginAttempt): Promise<void> {
  await runPrepared(q, FORGIVE, [pair, account, address]);
}

/** SQL that clears the failures of an account from all addresses. @param account SQL of its subject */
function cleared(account: string): string {
  return `with pairs as (delete from login_failures where scope = 'pair' and account = ${account} returning 1)
    delete from login_failures where scope = 'account' and subject = ${account} and (select count(*) from pairs) >= 0`;
}

/** Clears the failures of an account from all addresses. */
export async function clearAccount(q: Queryable, account: Uint8Array): Promise<void> {
  await q.raw(cleared(':account'), { account });
}

/** Clears the failures of a user's account from all addresses. */
export async function clearFailuresOfUser(q: Queryable, id: UserId): Promise<void> {
  await q.raw(cleared(`(select ${ACCOUNT_OF_USER} from users u where u.id = :id)`), { id });
}

/** Removes a batch of addresses from which an account has not logged in for 30 days, and returns their number. */
export async function pruneKnownAddresses(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from login_addresses where (account, address) in (
       select account, address from login_addresses where last_login_at < statement_timestamp() - interval '${KNOWN_DAYS} days'
       order by last_login_at limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}

/** Removes a batch of windows that have ended, and returns their number. Skips rows that an attempt holds. */
export async function pruneWindows(q: Queryable, windowMs: number, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from login_failures where (scope, subject) in (
       select scope, subject from login_failures
       where window_start < statement_timestamp() - :windowMs * interval '1 millisecond'
       order by window_start limit :batch for update skip locked)`,
    { windowMs, batch },
  );
  return rowCount;
}
