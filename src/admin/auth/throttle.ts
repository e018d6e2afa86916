/**
 * Slows guessing down: so many failures per account and per address in a quarter of an hour, counted for all replicas together and for
 * accounts that do not exist alike, so that being slowed tells nothing about who exists.
 */

import { hash } from 'node:crypto';
import { parseAddress } from '../../decision/address.ts';
import { Refusal } from '../../domain/errors.ts';
import {
  type Attempt,
  type AttemptWindows,
  type Claimed,
  claimAttempt,
  claimAttempts,
  clearFailures,
  type FailureScope,
  type FailureWindow,
  forgiveAttempt,
  returnAttempt,
  returnAttempts,
  windowLeftMs,
} from '../../store/queries/login-failures.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { GatePlace } from './attempt-gate.ts';
import type { AuthParts, LoginParts } from './parts.ts';

export type { Attempt } from '../../store/queries/login-failures.ts';

/** What counting attempts needs. */
export type ThrottleParts = Pick<LoginParts, 'db' | 'attempts' | 'login'>;

/** How long failures count. */
export const WINDOW_MS = 15 * 60 * 1000;

/**
 * Names what an attempt is counted under. Where nothing is known of its source, the second count is the account's own again: the limit of
 * the account holds, and no client can use up what others have.
 * @param account what names the account: kind and name, such as `email:ada@example.com`
 * @param throttledAs addresses, separated by a space; undefined = the source is unknown
 */
export function attemptAt(account: string, throttledAs: string | undefined): Attempt {
  const networks = (throttledAs ?? '').split(' ').map(network);
  const source = networks.includes('') ? `unknown:${account}` : networks.join(' ');
  return { account: digest(account), address: digest(source) };
}

function digest(text: string): Uint8Array {
  return hash('sha256', text, 'buffer');
}

/** An IPv6 host has a whole /64 to guess from, so that is what counts as its address. Empty for what is no address. */
function network(address: string): string {
  const parsed = parseAddress(address);
  if (parsed === undefined) return '';
  return parsed.family === 4 ? `4:${parsed.a}` : `6:${parsed.a}:${parsed.b}`;
}

/** Counts an attempt of both, the account first; where that had none left, the address is not asked. */
export type ClaimBoth = (attempt: Attempt, windows: AttemptWindows) => Promise<Claimed>;

/**
 * Runs one attempt. It is counted as a failure before its password is looked at, so that many at once are no way round the limit, and
 * stays counted unless `work` forgives it.
 * @param claimBoth how both are counted at once, where more is read along
 * @throws Refusal `too_many_attempts` when the account or the address has none left; then nothing is counted and nothing is done
 */
export async function attempting<T>(
  parts: ThrottleParts,
  attempt: Attempt,
  work: () => Promise<T>,
  claimBoth: ClaimBoth = (of, windows) => claimAttempts(parts.db.knex, of, windows),
): Promise<T> {
  const account = parts.attempts.open(`account:${hex(attempt.account)}`);
  const address = parts.attempts.open(`address:${hex(attempt.address)}`);
  try {
    const { knex } = parts.db;
    // Mostly both have one left. Where one has not, they are asked one after the other, each as often as it takes.
    const ask = claimBothOrNone(parts, attempt, claimBoth);
    const entered = await Promise.all([account.enterBy(ask), address.enterBy(ask)]);
    if (entered.every((each) => each)) return await work();
    if (!(await account.enter(() => claimAttempt(knex, 'account', attempt.account, window(parts, 'account'))))) {
      throw await tooMany(knex, 'account', attempt.account);
    }
    if (!(await claimAddress(parts, attempt, address))) throw await tooMany(knex, 'address', attempt.address);
    return await work();
  } finally {
    address.leave();
    account.leave();
  }
}

async function claimBothOrNone(parts: ThrottleParts, attempt: Attempt, claimBoth: ClaimBoth): Promise<boolean> {
  const claimed = await claimBoth(attempt, { account: window(parts, 'account'), address: window(parts, 'address') });
  if (claimed.account && !claimed.address) await returnAttempt(parts.db.knex, 'account', attempt.account);
  return claimed.account && claimed.address;
}

/** When the address is refused, or cannot be asked, the account gets its attempt back. */
async function claimAddress({ db: { knex }, ...parts }: ThrottleParts, attempt: Attempt, place: GatePlace): Promise<boolean> {
  let claimed = false;
  try {
    claimed = await place.enter(() => claimAttempt(knex, 'address', attempt.address, window(parts, 'address')));
  } finally {
    if (!claimed) await returnAttempt(knex, 'account', attempt.account);
  }
  return claimed;
}

function window({ login }: Pick<AuthParts, 'login'>, scope: FailureScope): FailureWindow {
  return { limit: scope === 'account' ? login.failuresPerAccount : login.failuresPerAddress, windowMs: WINDOW_MS };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

async function tooMany(q: Queryable, scope: FailureScope, subject: Uint8Array): Promise<Refusal> {
  const leftMs = await windowLeftMs(q, scope, subject, WINDOW_MS);
  return new Refusal('too_many_attempts', 'Too many failed attempts. Wait before trying again.', {
    retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
  });
}

/** The attempt succeeded: the account starts afresh, the address gets this one back. */
export async function forgive(trx: Queryable, attempt: Attempt): Promise<void> {
  await forgiveAttempt(trx, attempt.account, attempt.address);
}

/** The attempt was no failure, or nobody could look at the password; those before it stay counted. */
export async function takeBack(q: Queryable, attempt: Attempt): Promise<void> {
  await returnAttempts(q, attempt);
}

/** A password was set by other proof: failures before it no longer count. */
export async function forgetAccount(trx: Queryable, account: string): Promise<void> {
  await clearFailures(trx, 'account', digest(account));
}
