/**
 * Bounds guessing. Within a quarter of an hour, failures are bounded for one account from one address, for one account from all addresses,
 * and for one address. All replicas share the counts. Accounts that do not exist count alike, so that a refusal does not tell which
 * accounts exist.
 */

import { hash } from 'node:crypto';
import { parseAddress } from '../../decision/address.ts';
import { Refusal } from '../../domain/errors.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { GatePlace } from './attempt-gate.ts';
import {
  type Attempt,
  type AttemptWindows,
  type Claimed,
  claimAttempt,
  claimOne,
  clearAccount,
  FAILURE_SCOPES,
  type FailureScope,
  forgiveAttempt,
  returnAttempt,
  returnOne,
  windowLeftMs,
} from './failure-queries.ts';
import type { AuthParts, LoginParts } from './parts.ts';

export type { Attempt } from './failure-queries.ts';

/** What counting attempts needs. */
export type ThrottleParts = Pick<LoginParts, 'db' | 'attempts' | 'login'>;

/** How long failures count. */
export const WINDOW_MS = 15 * 60 * 1000;

/**
 * Names the subjects that an attempt counts for. If its source is unknown, the account stands for the address: unknown sources of one
 * account share a count, and no client can use up the count of another.
 * @param account what names the account: kind and name, such as `email:ada@example.com`
 * @param throttledAs addresses, separated by a space; undefined = the source is unknown
 */
export function attemptAt(account: string, throttledAs: string | undefined): Attempt {
  const networks = (throttledAs ?? '').split(' ').map(network);
  const source = networks.includes('') ? `unknown:${account}` : networks.join(' ');
  // An account may hold any character, a source holds no line end.
  return { pair: digest(`${source}\n${account}`), account: digest(account), address: digest(source) };
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

/** Counts an attempt of all its subjects, in their order; if one has none left, those after it are not asked. */
export type ClaimAll = (attempt: Attempt, windows: AttemptWindows) => Promise<Claimed>;

/**
 * Runs one attempt. It counts as a failure before its password is checked, so that many at once do not pass the limit, and stays
 * counted unless `work` takes it back.
 * @param claimAll how all subjects are counted at once, for callers that read more with the same statement
 * @throws Refusal `too_many_attempts` if a subject has none left; then nothing is counted and nothing is done
 */
export async function attempting<T>(
  parts: ThrottleParts,
  attempt: Attempt,
  work: () => Promise<T>,
  claimAll: ClaimAll = (of, windows) => claimAttempt(parts.db.knex, of, windows),
): Promise<T> {
  const places = FAILURE_SCOPES.map((scope) => ({
    scope,
    place: parts.attempts.open(`${scope}:${hex(attempt[scope])}`),
  }));
  try {
    // Mostly all have one left. If one has not, they are asked one after the other, each as often as it takes.
    const ask = claimAllOrNone(parts, attempt, claimAll);
    const entered = await Promise.all(places.map(({ place }) => place.enterBy(ask)));
    if (!entered.every((each) => each)) await enterInTurn(parts, attempt, places);
    return await work();
  } finally {
    for (const { place } of places.toReversed()) place.leave();
  }
}

interface ScopePlace {
  readonly scope: FailureScope;
  readonly place: GatePlace;
}

async function claimAllOrNone(parts: ThrottleParts, attempt: Attempt, claimAll: ClaimAll): Promise<boolean> {
  const claimed = await claimAll(attempt, windowsOf(parts));
  const granted = FAILURE_SCOPES.filter((scope) => claimed[scope]);
  if (granted.length === FAILURE_SCOPES.length) return true;
  await returnEach(parts, attempt, granted);
  return false;
}

/** If a subject is refused, or cannot be asked, those before it get their attempt back. */
async function enterInTurn(parts: ThrottleParts, attempt: Attempt, places: readonly ScopePlace[]): Promise<void> {
  const { knex } = parts.db;
  const windows = windowsOf(parts);
  const granted: FailureScope[] = [];
  try {
    for (const { scope, place } of places) {
      const entered = await place.enter(() => claimOne(knex, scope, attempt, windows[scope]));
      if (!entered) throw await tooMany(knex, scope, attempt);
      granted.push(scope);
    }
  } catch (error) {
    await returnEach(parts, attempt, granted);
    throw error;
  }
}

async function returnEach({ db }: ThrottleParts, attempt: Attempt, scopes: readonly FailureScope[]): Promise<void> {
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

async function tooMany(q: Queryable, scope: FailureScope, { [scope]: subject }: Attempt): Promise<Refusal> {
  const leftMs = await windowLeftMs(q, scope, subject, WINDOW_MS);
  return new Refusal('too_many_attempts', 'Too many failed attempts. Wait before trying again.', {
    retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
  });
}

/** The attempt succeeded: failures of the account from this address are forgotten, and the attempt no longer counts for either. */
export async function forgive(trx: Queryable, attempt: Attempt): Promise<void> {
  await forgiveAttempt(trx, attempt);
}

/** Runs what follows a correct password. If it fails, the attempt is taken back: the database, not the client, was at fault. */
export async function afterProof<T>(q: Queryable, attempt: Attempt, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await takeBack(q, attempt);
    throw error;
  }
}

/** The attempt was no failure, or its password could not be checked; those before it stay counted. */
export async function takeBack(q: Queryable, attempt: Attempt): Promise<void> {
  await returnAttempt(q, attempt);
}

/** A password was set by other proof: failures before it no longer count, whatever their address. */
export async function forgetAccount(trx: Queryable, account: string): Promise<void> {
  await clearAccount(trx, digest(account));
}
