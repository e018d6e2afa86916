/**
 * Requests that a client may send again without their being done twice. The answer is kept in the transaction of the change itself, so
 * there is no moment at which one is committed and the other not, and a claim on a key ends with its transaction, however that ends.
 *
 * Before an answer is given again, the change is rehearsed: run and undone. Whoever may not make it any more gets that refusal; every
 * other (the name is taken, by the first request) is what asking twice is bound to bring.
 */

import { createHash, createHmac } from 'node:crypto';
import { ERRORS, Refusal } from '../../domain/errors.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { Caller } from '../caller/caller.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { refusedByStore } from '../caller/refusals.ts';
import { canonicalJsonOf } from './canonical-json.ts';
import { claimResponse, findResponse, type ResponseId, type StoredResponse, storeResponse } from './queries.ts';

/** One request under an Idempotency-Key. */
export interface IdempotentRequest {
  /** As the client sent it. */
  readonly key: string;
  /** Without the query. */
  readonly path: string;
  /** Of query and body, see `fingerprintOf`. */
  readonly fingerprint: Buffer;
  /** Whether the answer is the one of an earlier request; set once the change is through. */
  replayed: boolean;
}

/**
 * HMAC-SHA-256 under the request's key, which is kept nowhere itself: a body may hold a password, and whoever reads what is kept shall not
 * be able to try passwords on it.
 * @param content query and body
 */
export function fingerprintOf(key: string, content: unknown): Buffer {
  return createHmac('sha256', key).update(canonicalJsonOf(content)).digest();
}

/**
 * Claims the key of the request, if it has one, until the transaction ends. Call it before the transaction waits for any lock: the request
 * that holds the key may hold that lock.
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
 * Does a change under the key of its request, if it has one, at most once. The key is claimed.
 * @param work the change; whatever it answers is kept, so there is no secret in it
 * @throws Refusal `idempotency_mismatch`, or of the work
 */
export async function runIdempotent<T>(trx: Transaction, caller: HeldCaller, work: () => Promise<T>): Promise<T> {
  const request = caller.idempotency;
  if (request === undefined) return work();
  const id = idOf(caller, request);
  const kept = await findResponse(trx, id);
  request.replayed = kept !== undefined;
  if (kept !== undefined) return replay(trx, request, kept, work);
  const value = await work();
  await storeResponse(trx, id, { fingerprint: request.fingerprint, answer: JSON.stringify(value ?? null) });
  return value;
}

/** A secret for the one answer that hands it out. An answer given again has none, and says so. */
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
  kept: StoredResponse,
  work: () => Promise<T>,
): Promise<T> {
  await dryRun(trx, work);
  if (!kept.fingerprint.equals(request.fingerprint)) {
    throw new Refusal('idempotency_mismatch', 'This Idempotency-Key was used for a different request. Use a new one.', {
      param: 'Idempotency-Key',
    });
  }
  const value: T = JSON.parse(kept.answer);
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
