/**
 * Failed logins, counted in the database so that all replicas slow an attacker down together. A subject is counted by its SHA-256
 * alone: the table names nobody. An attempt is counted before its password is looked at and given back when it succeeds, so a
 * thousand guesses at once get no further than a thousand in a row.
 */

import type pg from 'pg';
import type { UserId } from '../../domain/ids.ts';
import { runPrepared } from '../prepared.ts';
import type { Queryable } from '../queryable.ts';
import { PASSWORD_USER, type PasswordRow, type PasswordUser, toPasswordUser } from './credentials.ts';

export type FailureScope = 'account' | 'address';

/**
 * SQL of what failed logins of a user `u` are counted by: for a user of a directory, the username of the last login. Null if that user never
 * logged in.
 */
export const ACCOUNT_OF_USER = `case when u.source = 'local' then user_account(u.id, u.email)
  else (select account from user_logins where user_id = u.id) end`;

/** SQL of the ids of all users whose account is locked now. Reads the locked accounts and nothing else. */
export const LOCKED_USERS = `select o.id from login_failures f join users o on user_account(o.id, o.email) = f.subject and o.source = 'local'
      where f.scope = 'account' and f.locked_until > statement_timestamp()
    union all
    select l.user_id from login_failures f join user_logins l on l.account = f.subject
      where f.scope = 'account' and f.locked_until > statement_timestamp()`;

export interface FailureWindow {
  /** How many failures a window may hold. */
  readonly limit: number;
  readonly windowMs: number;
}

/**
 * Counts one attempt and gives a row, if the subject has one left.
 * @param scope SQL of the scope
 * @param first the place of the subject; that of the window's limit and that of its length in milliseconds follow
 * @param condition SQL that must be true as well
 */
function claimed(scope: string, first: number, condition = 'true'): string {
  const limit = `$${first + 1}::integer`;
  const length = `$${first + 2}::float8 * interval '1 millisecond'`;
  const over = `f.window_start + ${length} <= excluded.window_start`;
  return `insert into login_failures as f (scope, subject, window_start, failures, locked_until)
    select ${scope}, $${first}::bytea, now, 1, case when ${limit} = 1 then now + ${length} end
    from clock_timestamp() now where ${limit} > 0 and ${condition}
    on conflict (scope, subject) do update set
      failures = case when ${over} then 1 else f.failures + 1 end,
      window_start = case when ${over} then excluded.window_start else f.window_start end,
      locked_until = case
        when ${over} then excluded.locked_until
        when f.failures + 1 >= ${limit} then f.window_start + ${length}
      end
    where f.failures < ${limit} or ${over}
    returning 1`;
}

const CLAIM = { name: 'claim_attempt', text: claimed('$4::text', 1) };

/**
 * Parts of a `with` that count one attempt of an account and, if it had one left, of an address: `account` and `address` have a row each
 * where there was one left. The account first, as everywhere.
 */
const BOTH = `account as (${claimed("'account'", 1)}), address as (${claimed("'address'", 4, 'exists (select from account)')})`;
/** What is counted may be forgotten when PostgreSQL crashes within the second: not to wait for its disk is worth more at each login. */
const CLAIMED = `exists (select from account) as account, exists (select from address) as address,
    set_config('synchronous_commit', 'off', true) as commits`;

const CLAIM_BOTH = { name: 'claim_attempts', text: `with ${BOTH} select ${CLAIMED}` };
const CLAIM_LOGIN = {
  name: 'claim_login',
  text: `with ${BOTH} select ${CLAIMED}, found.*
    from (select) as once left join lateral (${PASSWORD_USER} where u.email = $7::text and exists (select from address)) found on true`,
};

/** Counts one attempt; true when the subject still had one left. The first attempt after its window's end begins a new window. */
export async function claimAttempt(
  q: Queryable,
  scope: FailureScope,
  subject: Uint8Array,
  window: FailureWindow,
): Promise<boolean> {
  return (await runPrepared(q, CLAIM, [subject, window.limit, window.windowMs, scope])).length === 1;
}

/** One attempt: what it is counted under. */
export interface Attempt {
  readonly account: Uint8Array;
  readonly address: Uint8Array;
}

export type AttemptWindows = Readonly<Record<FailureScope, FailureWindow>>;

/** Whether each had an attempt left. Where the account had none, the address was not asked. */
export interface Claimed {
  readonly account: boolean;
  readonly address: boolean;
}

const NOT_CLAIMED: Claimed = { account: false, address: false };

/** Counts one attempt of an account and of an address. */
export async function claimAttempts(q: Queryable, attempt: Attempt, windows: AttemptWindows): Promise<Claimed> {
  const [row] = await runPrepared<Claimed & pg.QueryResultRow>(q, CLAIM_BOTH, valuesOf(attempt, windows));
  return row ?? NOT_CLAIMED;
}

/** Like `claimAttempts`, and looks up whose password it is about when both had one left. @param email undefined: nobody's */
export async function claimLogin(
  q: Queryable,
  attempt: Attempt,
  windows: AttemptWindows,
  email: string | undefined,
): Promise<Claimed & { readonly user: PasswordUser | undefined }> {
  const [row] = await runPrepared<Claimed & { readonly [K in keyof PasswordRow]: PasswordRow[K] | null }>(q, CLAIM_LOGIN, [
    ...valuesOf(attempt, windows),
    email ?? null,
  ]);
  const { account, address } = row ?? NOT_CLAIMED;
  return { account, address, user: isFound(row) ? toPasswordUser(row) : undefined };
}

function isFound<R extends { readonly id: unknown }>(row: R | undefined): row is R & PasswordRow {
  return typeof row?.id === 'string';
}

function valuesOf({ account, address }: Attempt, windows: AttemptWindows): readonly unknown[] {
  return [account, windows.account.limit, windows.account.windowMs, address, windows.address.limit, windows.address.windowMs];
}

/** Milliseconds until the subject's window ends; 0 when it has none. */
export async function windowLeftMs(q: Queryable, scope: FailureScope, subject: Uint8Array, windowMs: number): Promise<number> {
  const result = await q.raw<{ rows: { left_ms: number }[] }>(
    `select ceil(extract(epoch from window_start - clock_timestamp()) * 1000 + :windowMs)::float8 as left_ms
     from login_failures where scope = :scope and subject = :subject`,
    { scope, subject, windowMs },
  );
  return Math.max(0, result.rows[0]?.left_ms ?? 0);
}

/** Takes the attempt of one of its subjects back. */
export async function returnAttempt(q: Queryable, scope: FailureScope, subject: Uint8Array): Promise<void> {
  await q.raw(
    'update login_failures set failures = failures - 1, locked_until = null where scope = :scope and subject = :subject and failures > 0',
    {
      scope,
      subject,
    },
  );
}

/**
 * Parts of a `with` that forget an account's failures and take one attempt of an address back, if `source` has rows.
 * @param first the place of the account's subject; the address's follows
 */
export function forgivenBy(source: string, first: number): string {
  // The account first, as everywhere: two who lock both in different orders would wait for each other.
  return `cleared as (
      delete from login_failures where scope = 'account' and subject = $${first}::bytea and exists (select from ${source}) returning 1
    ), returned as (
      update login_failures set failures = failures - 1, locked_until = null
      where scope = 'address' and subject = $${first + 1}::bytea and failures > 0 and exists (select from ${source})
        and (select count(*) from cleared) >= 0
    )`;
}

/**
 * Parts of a `with` that take one attempt of an account and of an address back, if `source` has rows.
 * @param first the place of the account's subject; the address's follows
 */
export function returnedBy(source: string, first: number): string {
  return `account_returned as (
      update login_failures set failures = failures - 1, locked_until = null
      where scope = 'account' and subject = $${first}::bytea and failures > 0 and exists (select from ${source}) returning 1
    ), address_returned as (
      update login_failures set failures = failures - 1, locked_until = null
      where scope = 'address' and subject = $${first + 1}::bytea and failures > 0 and exists (select from ${source})
        and (select count(*) from account_returned) >= 0
    )`;
}

const RETURN = { name: 'return_attempts', text: `with ${returnedBy('(select) as once', 1)} select` };

/**
 * Takes one attempt of the account and one of the address back: it was no failure after all. One statement, because all who come from one
 * address share its row, and hold it until they are done.
 */
export async function returnAttempts(q: Queryable, { account, address }: Attempt): Promise<void> {
  await runPrepared(q, RETURN, [account, address]);
}

const FORGIVE = { name: 'forgive_attempt', text: `with ${forgivenBy('(select) as once', 1)} select` };

/** Forgets the account's failures and takes one attempt of the address back. */
export async function forgiveAttempt(q: Queryable, account: Uint8Array, address: Uint8Array): Promise<void> {
  await runPrepared(q, FORGIVE, [account, address]);
}

/** Forgets the subject's failures. */
export async function clearFailures(q: Queryable, scope: FailureScope, subject: Uint8Array): Promise<void> {
  await q.raw('delete from login_failures where scope = :scope and subject = :subject', { scope, subject });
}

/** Forgets the failures of a user's account, whatever their number. */
export async function unlockUser(q: Queryable, id: UserId): Promise<void> {
  await q.raw(
    `delete from login_failures where scope = 'account' and subject = (select ${ACCOUNT_OF_USER} from users u where u.id = :id)`,
    { id },
  );
}

/** Takes away a batch of windows that ended and answers how many; rows that an attempt holds are left to it. */
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
