/**
 * Limits password guessing. The server limits the failures within 15 minutes for one account from one address, for one
 * account from all addresses, and for one address. All replicas share the counts. Accounts that do not exist have the
 * same limits, so that a rejection does not reveal which accounts exist.
 */

import { networkOf } from '../../decision/address.ts';
import { Refusal } from '../../domain/errors.ts';
import { opaqueDigest } from '../../identity/opaque-tokens.ts';
import type { Queryable } from '../../store/queryable.ts';
import {
  type AttemptWindows,
  type Claimed,
  claimAttempt,
  claimOne,
  clearAccount,
  FAILURE_SCOPES,
  type FailureScope,
  type LoginAttempt,
  returnAttempt,
  returnOne,
  windowLeftMs,
} from './failure-queries.ts';
import type { AttemptSlot } from './login-attempt-limiter.ts';
import type { AuthParts, LoginParts } from './parts.ts';

export type { LoginAttempt } from './failure-queries.ts';

export type ThrottleParts = Pick<LoginParts, 'db' | 'attempts' | 'login'>;

/** Failures older than this do not count. */
export const WINDOW_MS = 15 * 60 * 1000;

/**
 * Returns the subjects of an attempt. If its source is unknown, the account takes the place of the address: unknown
 * sources of one account share a count, and no client can use up the count of another.
 * @param account the account's kind and name, such as `email:ada@example.com`
 * @param throttledAs an address; undefined: the source is unknown
 */
export function attemptAt(account: string, throttledAs: string | undefined): LoginAttempt {
  const source = networkOf(throttledAs) ?? `unknown:${account}`;
  // An account may have any character. A source has no line end.
  return { pair: opaqueDigest(`${source}\n${account}`), account: opaqueDigest(account), address: opaqueDigest(source) };
}

/** Counts an attempt for its subjects in their order, up to the first subject that has reached its limit. */
export type ClaimAttempt = (attempt: LoginAttempt, windows: AttemptWindows) => Promise<Claimed>;

/**
 * Runs one attempt. It counts as a failure before its password is checked, so that concurrent attempts cannot exceed
 * the limit, and remains counted unless `work` takes it back.
 * @param claimAll counts all subjects at once, for callers that read more with the same statement
 * @throws Refusal `too_many_attempts` if a subject has reached its limit; then nothing is counted, and `work` does not
 *   run
 */
export async function withAttemptLimits<T>(
  parts: ThrottleParts,
  attempt: LoginAttempt,
  work: () => Promise<T>,
  claimAll: ClaimAttempt = (of, windows) => claimAttempt(parts.db.knex, of, windows),
): Promise<T> {
  const slots = FAILURE_SCOPES.map((scope) => ({
    scope,
    slot: parts.attempts.open(`${scope}:${hex(attempt[scope])}`),
  }));
  try {
    // If a subject has reached its limit, the slots enter one after the other, and each waits for other attempts of its
    // subject.
    const claim = claimAllOrNone(parts, attempt, claimAll);
    const entered = await Promise.all(slots.map(({ slot }) => slot.enterBy(claim)));
    if (!entered.every((each) => each)) await enterInTurn(parts, attempt, slots);
    return await work();
  } finally {
    for (const { slot } of slots.toReversed()) slot.leave();
  }
}

interface ScopeSlot {
  readonly scope: FailureScope;
  readonly slot: AttemptSlot;
}

async function claimAllOrNone(parts: ThrottleParts, attempt: LoginAttempt, claimAll: ClaimAttempt): Promise<boolean> {
  const claimed = await claimAll(attempt, windowsOf(parts));
  const granted = FAILURE_SCOPES.filter((scope) => claimed[scope]);
  if (granted.length === FAILURE_SCOPES.length) return true;
  await returnEach(parts, attempt, granted);
  return false;
}

/** If a claim is rejected or fails, the claims before it are returned. */
async function enterInTurn(parts: ThrottleParts, attempt: LoginAttempt, slots: readonly ScopeSlot[]): Promise<void> {
  const { knex } = parts.db;
  const windows = windowsOf(parts);
  const granted: FailureScope[] = [];
  try {
    for (const { scope, slot } of slots) {
      const entered = await slot.enter(() => claimOne(knex, scope, attempt, windows[scope]));
      if (!entered) throw await tooMany(knex, scope, attempt);
      granted.push(scope);
    }
  } catch (error) {
    await returnEach(parts, attempt, granted);
    throw error;
  }
}

async function returnEach(
  { db }: ThrottleParts,
  attempt: LoginAttempt,
  scopes: readonly FailureScope[],
): Promise<void> {
  for (const scope of scopes) await returnOne(db.knex, scope, attempt);
}

function windowsOf({ login }: Pick<AuthParts, 'login'>): AttemptWindows {
  return {
    pair: { limit: login.failuresPerAccount, windowMs: WINDOW_MS },
    account: { limit: Math.max(login.totalAccountFailures, login.failuresPerAccount), windowMs: WINDOW_MS },
    address: { limit: login.failuresPerAddress, windowMs: WINDOW_MS },
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

async function tooMany(q: Queryable, scope: FailureScope, { [scope]: subject }: LoginAttempt): Promise<Refusal> {
  const leftMs = await windowLeftMs(q, scope, subject, WINDOW_MS);
  return new Refusal('too_many_attempts', 'Too many failed attempts. Wait before trying again.', {
    retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
  });
}

/**
 * Runs a check of an attempt, or the work after it. If it throws, the attempt no longer counts, because the client did
 * not cause the failure.
 */
export async function returnedOnFailure<T>(q: Queryable, attempt: LoginAttempt, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await returnAttempt(q, attempt);
    throw error;
  }
}

/** Clears the account's failures from all addresses, after a password was set with another proof. */
export async function forgetAccount(trx: Queryable, account: string): Promise<void> {
  await clearAccount(trx, opaqueDigest(account));
}
