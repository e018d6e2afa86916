/** Responses that are stored for an Idempotency-Key. Times come from the database's clock, which all replicas share. */

import type { Queryable } from '../../store/queryable.ts';

/** A SHA-256 of caller, path and Idempotency-Key. */
export type ResponseId = Buffer;

/** The lifetime of a stored response, as PostgreSQL writes it. */
const LIFETIME = '24 hours';

/**
 * Claims an id until the transaction ends. Returns false if another transaction holds the claim. Only the first 64 bits
 * of an id count. Two ids that share them exclude each other, which is rare and harmless.
 */
export async function claimResponse(trx: Queryable, id: ResponseId): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { claimed: boolean }[] }>(
    'select pg_try_advisory_xact_lock(cast(:number as bigint)) as claimed',
    { number: id.readBigInt64BE(0).toString() },
  );
  return rows[0]?.claimed === true;
}

export interface StoredResponse {
  readonly fingerprint: Buffer;
  /** JSON */
  readonly answer: string;
}

/**
 * Call it after the statement that claimed the id. It then sees the response that the previous holder of the claim
 * committed.
 */
export async function findResponse(trx: Queryable, id: ResponseId): Promise<StoredResponse | undefined> {
  const { rows } = await trx.raw<{ rows: StoredResponse[] }>(
    `select fingerprint, answer from idempotent_answers
     where id = :id and answered_at > clock_timestamp() - interval '${LIFETIME}'`,
    { id },
  );
  return rows[0];
}

/** Replaces an expired response with the same id. */
export async function storeResponse(trx: Queryable, id: ResponseId, response: StoredResponse): Promise<void> {
  await trx.raw(
    `insert into idempotent_answers (id, fingerprint, answer) values (:id, :fingerprint, :answer)
     on conflict (id) do update set fingerprint = excluded.fingerprint, answer = excluded.answer, answered_at = clock_timestamp()`,
    { id, ...response },
  );
}

/** Deletes up to `batch` expired responses, the oldest first. Returns their number. */
export async function pruneResponses(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from idempotent_answers where id in (
       select id from idempotent_answers where answered_at <= clock_timestamp() - interval '${LIFETIME}'
       order by answered_at limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}
