/**
 * Pages of lists. A cursor names the row after which the next page begins, so that inserted and deleted rows do not
 * shift pages.
 */

import { createHash } from 'node:crypto';
import { Refusal } from '../../domain/errors.ts';
import { canonicalJsonOf } from '../../domain/json.ts';
import type { Page, PageRows, TenantScope } from '../../store/paging.ts';
import type { Caller } from '../caller/caller.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;
/** The largest number of bytes of the rows of one page, as JSON. A page always has at least one row. */
export const MAX_PAGE_BYTES = 1024 * 1024;

export interface ListQuery {
  readonly limit?: number;
  readonly cursor?: string;
  /** Also count the rows of the whole list. */
  readonly count?: boolean;
}

export interface List<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
  /** The rows of the whole list. Present if the request has `count=true` and there are at most MAX_COUNTED rows. */
  readonly total?: number;
  /** Present instead of `total` if there are more rows. */
  readonly total_exceeds?: number;
}

/** The server counts no more rows of a list. */
export const MAX_COUNTED = 10_000;

export function scopeOf(caller: Caller): TenantScope {
  return caller.everyTenant ? { kind: 'every' } : { kind: 'one', tenant: caller.tenant };
}

/**
 * Fetches one page and wraps it.
 * @param name of the list. A cursor is valid for one name, tenant and set of filters.
 * @param query the filters and the parameters of the page
 * @param position the sort values of a row
 * @param count called if the query has `count=true`, which only lists with a count accept
 * @throws Refusal `invalid_parameter` for an invalid cursor, or one of another list
 */
export async function paged<Row, T>(
  caller: Caller,
  name: string,
  query: ListQuery,
  fetch: (page: Page) => Promise<readonly Row[] | PageRows<Row>>,
  position: (row: Row) => readonly string[],
  show: (row: Row) => T,
  count?: CountRows,
): Promise<List<T>> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const { after, next } = cursorsOf(caller, name, query);
  const [fetched, total] = await Promise.all([
    fetch({ after, take: limit + 1, maxBytes: MAX_PAGE_BYTES }),
    query.count === true && count !== undefined ? totalOf(count) : ({} as const),
  ]);
  const {
    rows,
    more: moreStored,
    end,
  }: PageRows<Row> = 'more' in fetched ? fetched : { rows: fetched, more: fetched.length > limit };
  const data = fitting(rows.slice(0, limit), show);
  const last = data.length === rows.length ? (end ?? rows.at(-1)) : rows[data.length - 1];
  const more = (moreStored || data.length < rows.length) && last !== undefined;
  return {
    object: 'list',
    data,
    has_more: more,
    next_cursor: more ? next(position(last)) : null,
    ...total,
  };
}

/** Returns the resources of the first rows within MAX_PAGE_BYTES, at least one. */
function fitting<Row, T>(rows: readonly Row[], show: (row: Row) => T): readonly T[] {
  const data: T[] = [];
  let bytes = 0;
  for (const row of rows) {
    const shown = show(row);
    bytes += jsonBytes(shown);
    if (bytes > MAX_PAGE_BYTES && data.length > 0) break;
    data.push(shown);
  }
  return data;
}

/** Returns the bytes of a value in a response, with the comma after it. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

/** Counts the rows of a whole list, up to `most`. Undefined: too many rows would have to be read. */
type CountRows = (most: number) => Promise<number | undefined>;

async function totalOf(count: CountRows): Promise<Pick<List<never>, 'total' | 'total_exceeds'>> {
  const rows = await count(MAX_COUNTED + 1);
  if (rows === undefined) return {};
  return rows > MAX_COUNTED ? { total_exceeds: MAX_COUNTED } : { total: rows };
}

export interface Cursors {
  /** The position after which the page begins; undefined = at the start. */
  readonly after: readonly string[] | undefined;
  next(position: readonly string[]): string;
}

/**
 * Returns the cursors of a list whose pages are not the rows of one query.
 * @throws Refusal `invalid_parameter`, like `paged`
 */
export function cursorsOf(caller: Caller, name: string, query: ListQuery): Cursors {
  const binding = bindingOf(caller, name, query);
  return {
    after: query.cursor === undefined ? undefined : readCursor(binding, query.cursor),
    next: (position) => writeCursor(binding, position),
  };
}

/** Returns a query without the parameters of its pages, and without `tenant_id`, which is part of the caller already. */
export function filterOf<Q extends ListQuery & { readonly tenant_id?: string }>(query: Q) {
  const { limit: _limit, cursor: _cursor, count: _count, tenant_id: _tenant, ...filter } = query;
  return filter;
}

/** Returns the text that a cursor is valid for: list, tenant and filters. */
function bindingOf(caller: Caller, name: string, query: ListQuery): string {
  return canonicalJsonOf([name, caller.everyTenant ? '*' : caller.tenant, filterOf(query)]);
}

/**
 * The length of the check that detects changed cursors. It protects no secret: the client has seen the row of the
 * position.
 */
const CHECK_BYTES = 12;

function writeCursor(binding: string, position: readonly string[]): string {
  const text = JSON.stringify(position);
  return Buffer.concat([checkOf(binding, text), Buffer.from(text)]).toString('base64url');
}

/** A position may hold a name of 200 characters of four bytes each. */
export const MAX_CURSOR_LENGTH = 2048;

function readCursor(binding: string, cursor: string): readonly string[] {
  const bytes = cursor.length > MAX_CURSOR_LENGTH ? undefined : Buffer.from(cursor, 'base64url');
  // The decoder skips invalid characters, so that many texts would decode to one cursor.
  if (bytes === undefined || bytes.toString('base64url') !== cursor) throw badCursor();
  const text = bytes.subarray(CHECK_BYTES).toString();
  if (!checkOf(binding, text).equals(bytes.subarray(0, CHECK_BYTES))) throw badCursor();
  return positionIn(text);
}

const MAX_POSITION_VALUES = 2;

/** A client can compute the check too, so the position is validated like all input. */
function positionIn(text: string): readonly string[] {
  const values = parsed(text);
  if (!Array.isArray(values) || values.length < 1 || values.length > MAX_POSITION_VALUES) throw badCursor();
  return values.map((value: unknown) => {
    if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) throw badCursor();
    return value;
  });
}

/** A JSON array of strings. Other JSON is not parsed. */
const POSITION = /^\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")*\]$/;

function parsed(text: string): unknown {
  if (!POSITION.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function checkOf(binding: string, text: string): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([binding, text]))
    .digest()
    .subarray(0, CHECK_BYTES);
}

export function badCursor(): Refusal {
  return new Refusal(
    'invalid_parameter',
    'The cursor does not belong to this list. Use next_cursor of the previous page.',
    {
      param: 'cursor',
    },
  );
}
