/** Rows of the audit log that no seal names and that do not wait for one: Postern did not write them. */

import { idsIn, sealedIds } from './audit-seal-queries.ts';
import type { Queryable } from './queryable.ts';

/** What is wrong with the audit log. */
export interface Break {
  /** Undefined where it is not known which rows are concerned. */
  readonly row: number | undefined;
  /** One sentence. */
  readonly what: string;
}

const SEALS_PAGE = 200;
const IDS_PAGE = 20_000;
/** Ids looked at in one pass over the seals: a bit of memory each. */
const WINDOW = 64 * 1_048_576;

/**
 * The first row that no seal names and that does not wait for one, or that two seals name.
 * @param start seals up to this one prove nothing
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
