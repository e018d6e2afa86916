/**
 * Idempotent requests: a client may repeat a request with its Idempotency-Key, and the change runs at most once. The
 * response is stored in the transaction of the change, so both are committed or neither. A claim on a key ends with its
 * transaction.
 *
 * Before a stored response is replayed, a dry run executes the change and rolls it back. If the caller has lost the
 * permission, it gets that refusal. Other refusals are ignored, because the first request causes them, for example when
 * it took the name.
 */

import { createHash, createHmac } from 'node:crypto';
import { ERRORS, Refusal } from '../../domain/errors.ts';
import { canonicalJsonOf } from '../../domain/json.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { refusedByStore } from '../caller/refusals.ts';
import { claimResponse, findResponse, type ResponseId, type StoredResponse, storeResponse } from './queries.ts';

/** One request under an Idempotency-Key. */
export interface IdempotentRequest {
  /** As the client sent it. */
  readonly key: string;
  /** Without the query. */
  readonly path: string;
  /** The digest of query and body, see `fingerprintOf`. */
  readonly fingerprint: Buffer;
  /** True if the response is a replay. Set when the change is complete. */
  replayed: boolean;
}

/**
 * Returns an HMAC-SHA-256 with the request's Idempotency-Key as its key. The server does not store that key, so a
 * reader of the database cannot use the fingerprint to test guesses of a password in the body.
 * @param content query and body
 */
export function fingerprintOf(key: string, content: unknown): Buffer {
  return createHmac('sha256', key).update(canonicalJsonOf(content)).digest();
}

/**
 * Claims the request's Idempotency-Key, if it has one, until the transaction ends. Call it before the transaction waits
 * for a lock, because the request that holds the claim may hold that lock.
 * @throws Refusal `idempotency_in_progress`
 */
export async function claim(trx: Transaction, caller: Caller): Promise<void> {
  const request = caller.idempotency;
  if (request === undefined || (await claimResponse(trx, idOf(caller, request)))) return;
  throw new Refusal(
    'idempotency_in_progress',
    'A request with this Idempotency-Key is still in progress. Wait for its response, then repeat the request.',
  );
}

/**
 * Runs a change at most once for the request's Idempotency-Key, which must be claimed. Without a key, it runs the
 * change.
 * @param work the change. Its result is stored and must not contain secrets
 * @throws Refusal `idempotency_mismatch`, or of the work
 */
export async function runIdempotent<T>(trx: Transaction, caller: HeldCaller, work: () => Promise<T>): Promise<T> {
  const request = caller.idempotency;
  if (request === undefined) return work();
  const id = idOf(caller, request);
  const stored = await findResponse(trx, id);
  if (stored !== undefined) return replay(trx, request, stored, work);
  const value = await work();
  await storeResponse(trx, id, { fingerprint: request.fingerprint, answer: JSON.stringify(value ?? null) });
  return value;
}

/** Returns the secret for the first response. A replay has the member `secret_available: false` in its place. */
export function revealOnce<S extends object>(caller: Caller, secret: S): S | { readonly secret_available: false } {
  return caller.idempotency?.replayed === true ? { secret_available: false } : secret;
}

function idOf(caller: Caller, request: IdempotentRequest): ResponseId {
  const parts = [caller.tenant, caller.principal.id, request.path, request.key];
  return createHash('sha256').update(JSON.stringify(parts)).digest();
}

async function replay<T>(
  trx: Transaction,
  request: IdempotentRequest,
  stored: StoredResponse,
  work: () => Promise<T>,
): Promise<T> {
  await dryRun(trx, work);
  if (!stored.fingerprint.equals(request.fingerprint)) {
    throw new Refusal('idempotency_mismatch', 'This Idempotency-Key was used for a different request. Use a new one.', {
      param: 'Idempotency-Key',
    });
  }
  const value: T = JSON.parse(stored.answer);
  request.replayed = true;
  return value;
}

async function dryRun(trx: Transaction, work: () => Promise<unknown>): Promise<void> {
  await trx.raw('savepoint dry_run');
  try {
    await work();
  } catch (cause) {
    const error = refusedByStore(cause);
    if (!(error instanceof Refusal) || ERRORS[error.code].type === 'permission_error') throw error;
  }
  await trx.raw('rollback to savepoint dry_run');
}
