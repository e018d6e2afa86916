/** Answers kept under an Idempotency-Key. Times are the database's clock, which all replicas share. */

import type { Queryable } from '../../store/queryable.ts';

/** What an answer is kept under: a SHA-256. */
export type ResponseId = Buffer;

/** How long an answer is kept, as PostgreSQL writes it. */
const KEPT = '24 hours';

/**
 * Keeps all others from the same id until the transaction ends, however it ends; false when another transaction does so already. Of
 * ids the first 64 bits count: two that share them would merely wait for each other.
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

/** Call it with the id claimed, in a statement after the claim's: it then sees what the claim's last holder committed. */
export async function findResponse(trx: Queryable, id: ResponseId): Promise<StoredResponse | undefined> {
  const { rows } = await trx.raw<{ rows: StoredResponse[] }>(
    `select fingerprint, answer from idempotent_answers
     where id = :id and answered_at > clock_timestamp() - interval '${KEPT}'`,
    { id },
  );
  return rows[0];
}

/** Takes the place of one that is over its time. */
export async function storeResponse(trx: Queryable, id: ResponseId, kept: StoredResponse): Promise<void> {
  await trx.raw(
    `insert into idempotent_answers (id, fingerprint, answer) values (:id, :fingerprint, :answer)
     on conflict (id) do update set fingerprint = excluded.fingerprint, answer = excluded.answer, answered_at = clock_timestamp()`,
    { id, ...kept },
  );
}

/** Deletes answers that are over their time, the oldest first; answers how many. */
export async function pruneResponses(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from idempotent_answers where id in (
       select id from idempotent_answers where answered_at <= clock_timestamp() - interval '${KEPT}'
       order by answered_at limit :batch for update skip locked)`,
    { batch },
  );
  return rowCount;
}
