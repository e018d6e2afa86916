/**
 * Failed logins, counted in the database so that all replicas slow an attacker down together. A subject is counted by its SHA-256
 * alone: the table names nobody. An attempt is counted before its password is looked at and given back when it succeeds, so a
 * thousand guesses at once get no further than a thousand in a row.
 */

import type { Knex } from 'knex';
import { runPrepared } from '../prepared.ts';

export type FailureScope = 'account' | 'address';

export interface FailureWindow {
  /** How many failures a window may hold. */
  readonly limit: number;
  readonly windowMs: number;
}

const CLAIM = {
  name: 'claim_attempt',
  text: `insert into login_failures as f (scope, subject, window_start, failures)
    select $1::text, $2::bytea, clock_timestamp(), 1 where $3::integer > 0
    on conflict (scope, subject) do update set
      failures = case when f.window_start + $4::float8 * interval '1 millisecond' <= excluded.window_start then 1 else f.failures + 1 end,
      window_start = case when f.window_start + $4::float8 * interval '1 millisecond' <= excluded.window_start
        then excluded.window_start else f.window_start end
    where f.failures < $3::integer or f.window_start + $4::float8 * interval '1 millisecond' <= excluded.window_start
    returning 1`,
};

/** Counts one attempt; true when the subject still had one left. The first attempt after its window's end begins a new window. */
export async function claimAttempt(q: Knex, scope: FailureScope, subject: Uint8Array, window: FailureWindow): Promise<boolean> {
  return (await runPrepared(q, CLAIM, [scope, subject, window.limit, window.windowMs])).length === 1;
}

/** Milliseconds until the subject's window ends; 0 when it has none. */
export async function windowLeftMs(q: Knex, scope: FailureScope, subject: Uint8Array, windowMs: number): Promise<number> {
  const result = await q.raw<{ rows: { left_ms: number }[] }>(
    `select ceil(extract(epoch from window_start - clock_timestamp()) * 1000 + :windowMs)::float8 as left_ms
     from login_failures where scope = :scope and subject = :subject`,
    { scope, subject, windowMs },
  );
  return Math.max(0, result.rows[0]?.left_ms ?? 0);
}

/** Takes one attempt back: it was no failure after all. */
export async function returnAttempt(q: Knex, scope: FailureScope, subject: Uint8Array): Promise<void> {
  await q.raw('update login_failures set failures = failures - 1 where scope = :scope and subject = :subject and failures > 0', {
    scope,
    subject,
  });
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
      update login_failures set failures = failures - 1
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
      update login_failures set failures = failures - 1
      where scope = 'account' and subject = $${first}::bytea and failures > 0 and exists (select from ${source}) returning 1
    ), address_returned as (
      update login_failures set failures = failures - 1
      where scope = 'address' and subject = $${first + 1}::bytea and failures > 0 and exists (select from ${source})
        and (select count(*) from account_returned) >= 0
    )`;
}

const FORGIVE = { name: 'forgive_attempt', text: `with ${forgivenBy('(select) as once', 1)} select` };

/** Forgets the account's failures and takes one attempt of the address back. */
export async function forgiveAttempt(q: Knex, account: Uint8Array, address: Uint8Array): Promise<void> {
  await runPrepared(q, FORGIVE, [account, address]);
}

/** Forgets the subject's failures. */
export async function clearFailures(q: Knex, scope: FailureScope, subject: Uint8Array): Promise<void> {
  await q.raw('delete from login_failures where scope = :scope and subject = :subject', { scope, subject });
}

/** Takes away a batch of windows that ended and answers how many; rows that an attempt holds are left to it. */
export async function pruneWindows(q: Knex, windowMs: number, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from login_failures where (scope, subject) in (
       select scope, subject from login_failures
       where window_start < statement_timestamp() - :windowMs * interval '1 millisecond'
       order by window_start limit :batch for update skip locked)`,
    { windowMs, batch },
  );
  return rowCount;
}
