/**
 * Failed logins, counted in the database so that all replicas slow an attacker down together. A subject is counted by its SHA-256
 * alone: the table names nobody. An attempt is counted before its password is looked at and given back when it succeeds, so a
 * thousand guesses at once get no further than a thousand in a row.
 */

import type { Knex } from 'knex';

export type FailureScope = 'account' | 'address';

export interface FailureWindow {
  /** How many failures a window may hold. */
  readonly limit: number;
  readonly windowMs: number;
}

/** Rows of windows long past that one attempt takes away with it: more than it adds, so the table stays bounded. */
const PRUNED_PER_ATTEMPT = 8;

/** Counts one attempt; true when the subject still had one left. The first attempt after its window's end begins a new window. */
export async function claimAttempt(q: Knex, scope: FailureScope, subject: Uint8Array, window: FailureWindow): Promise<boolean> {
  const result = await q.raw<{ rowCount: number }>(
    `insert into login_failures as f (scope, subject, window_start, failures)
     select cast(:scope as text), cast(:subject as bytea), clock_timestamp(), 1 where cast(:limit as integer) > 0
     on conflict (scope, subject) do update set
       failures = case when f.window_start + :windowMs * interval '1 millisecond' <= excluded.window_start then 1 else f.failures + 1 end,
       window_start = case when f.window_start + :windowMs * interval '1 millisecond' <= excluded.window_start
         then excluded.window_start else f.window_start end
     where f.failures < :limit or f.window_start + :windowMs * interval '1 millisecond' <= excluded.window_start`,
    { scope, subject, limit: window.limit, windowMs: window.windowMs },
  );
  return result.rowCount === 1;
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

/** Forgets the subject's failures. */
export async function clearFailures(q: Knex, scope: FailureScope, subject: Uint8Array): Promise<void> {
  await q.raw('delete from login_failures where scope = :scope and subject = :subject', { scope, subject });
}

/** Takes away a few windows that ended; rows that another attempt holds are left to it. */
export async function pruneWindows(q: Knex, windowMs: number): Promise<void> {
  await q.raw(
    `delete from login_failures where (scope, subject) in (
       select scope, subject from login_failures
       where window_start < clock_timestamp() - :windowMs * interval '1 millisecond'
       order by window_start limit ${PRUNED_PER_ATTEMPT} for update skip locked)`,
    { windowMs },
  );
}
