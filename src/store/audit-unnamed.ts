/** Finds rows of the audit log that are not sealed and do not wait for a seal: Postern did not write them. */

import { idsIn, sealedIds } from './audit-seal-queries.ts';
import type { Queryable } from './queryable.ts';

/** Damage to the audit log. */
export interface Break {
  /** Undefined if the affected rows are unknown. */
  readonly row: number | undefined;
  /** One sentence. */
  readonly what: string;
}

const SEALS_PAGE = 200;
const IDS_PAGE = 20_000;
/** Ids checked in one pass over the seals. Each takes one bit of memory. */
const WINDOW = 64 * 1_048_576;

/**
 * Returns the first row that is in no seal and does not wait for one, or that is in two seals.
 * @param start seals up to this one are not verified and do not count
 */
export async function unnamedRow(trx: Queryable, start: number): Promise<Break | undefined> {
  const unlimited = { after: Number.MIN_SAFE_INTEGER, before: Number.MAX_SAFE_INTEGER };
  for (let [next] = await idsIn(trx, 'audit_log', unlimited, 1); next !== undefined; ) {
    const before = next + WINDOW;
    const broken = await unnamedIn(trx, start, next, before);
    if (broken !== undefined) return broken;
    [next] = await idsIn(trx, 'audit_log', { ...unlimited, after: before - 1 }, 1);
  }
  return undefined;
}

async function unnamedIn(trx: Queryable, start: number, from: number, before: number): Promise<Break | undefined> {
  const named = new Uint8Array(WINDOW / 8);
  const has = (id: number): boolean => ((named[(id - from) >> 3] ?? 0) & (1 << ((id - from) & 7))) !== 0;
  const add = (id: number): void => {
    named[(id - from) >> 3] = (named[(id - from) >> 3] ?? 0) | (1 << ((id - from) & 7));
  };
  for (
    let page: { after: number; take: number } | undefined = { after: start, take: SEALS_PAGE };
    page !== undefined;
  ) {
    const { ids, last } = await sealedIds(trx, { from, before }, page);
    for (const id of ids) {
      if (has(id)) return { row: id, what: 'two seals name it' };
      add(id);
    }
    page = last === undefined ? undefined : { after: last, take: SEALS_PAGE };
  }
  for await (const ids of idPages(trx, 'audit_unsealed', from, before)) ids.forEach(add);
  for await (const ids of idPages(trx, 'audit_log', from, before)) {
    const row = ids.find((id) => !has(id));
    if (row !== undefined)
      return { row, what: 'no seal names it and it does not wait for one, so Postern did not write it' };
  }
  return undefined;
}

async function* idPages(
  trx: Queryable,
  table: 'audit_log' | 'audit_unsealed',
  from: number,
  before: number,
): AsyncGenerator<readonly number[]> {
  for (let after: number | undefined = from - 1; after !== undefined; ) {
    const ids: readonly number[] = await idsIn(trx, table, { after, before }, IDS_PAGE);
    yield ids;
    after = ids.at(-1);
  }
}
