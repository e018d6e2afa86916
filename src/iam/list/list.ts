/** Lists in pages: a cursor says after which row the next page begins, so pages stay true while rows come and go. */

import { createHash } from 'node:crypto';
import { Refusal } from '../../domain/errors.ts';
import type { Page, PageRows, TenantScope } from '../../store/paging.ts';
import type { Caller } from '../caller/caller.ts';
import { canonicalJsonOf } from '../change/canonical-json.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;
/** Most bytes of the rows of one page, as JSON; a page shows one row at least, however large that is. */
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
  /** Rows of the whole list, whatever page this is. Only if the request asks for it and there are at most MAX_COUNTED. */
  readonly total?: number;
  /** In place of `total` if there are more. */
  readonly total_exceeds?: number;
}

/** A list is counted up to here. */
export const MAX_COUNTED = 10_000;

export function scopeOf(caller: Caller): TenantScope {
  return caller.everyTenant ? { kind: 'every' } : { kind: 'one', tenant: caller.tenant };
}

/**
 * Fetches one page and wraps it.
 * @param name of the list, to which its cursors are bound, as they are to the tenant and the filters
 * @param query with the filters, whatever they are
 * @param position the sort values of a row
 * @param count asked only if the query has `count=true`, which only lists with a count take
 * @throws Refusal `invalid_parameter` for a cursor that is none, or another list's
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
  const binding = bindingOf(caller, name, query);
  const after = query.cursor === undefined ? undefined : readCursor(binding, query.cursor);
  const [fetched, total] = await Promise.all([
    fetch({ after, take: limit + 1, maxBytes: MAX_PAGE_BYTES }),
    query.count === true && count !== undefined ? totalOf(count) : ({} as const),
  ]);
  const { rows, more: moreStored } = 'more' in fetched ? fetched : { rows: fetched, more: fetched.length > limit };
  const data = fitting(rows.slice(0, limit), show);
  const last = rows[data.length - 1];
  const more = (moreStored || data.length < rows.length) && last !== undefined;
  return {
    object: 'list',
    data,
    has_more: more,
    next_cursor: more ? writeCursor(binding, position(last)) : null,
    ...total,
  };
}

/** Shows the first rows, up to the one that would take the page past its bytes; one at least. */
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

/** Returns the bytes that a value takes in an answer, with the comma behind it. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}

/** Counts the rows of a whole list, up to `most`. */
export type CountRows = (most: number) => Promise<number>;

async function totalOf(count: CountRows): Promise<Pick<List<never>, 'total' | 'total_exceeds'>> {
  const rows = await count(MAX_COUNTED + 1);
  return rows > MAX_COUNTED ? { total_exceeds: MAX_COUNTED } : { total: rows };
}

export interface Cursors {
  /** Where the page begins; undefined = at the start. Throws a Refusal `invalid_parameter` for a cursor that is none, or another list's. */
  readonly after: readonly string[] | undefined;
  next(position: readonly string[]): string;
}

/** The cursors of a list whose pages are not made of the rows of one query. */
export function cursorsOf(caller: Caller, name: string, query: ListQuery): Cursors {
  const binding = bindingOf(caller, name, query);
  return {
    after: query.cursor === undefined ? undefined : readCursor(binding, query.cursor),
    next: (position) => writeCursor(binding, position),
  };
}

/** Pages of one list may differ in size; `tenant_id` is the caller's tenant by the time a list is asked for. */
const PAGING: ReadonlySet<string> = new Set(['limit', 'cursor', 'count', 'tenant_id']);

/** What a cursor belongs to. */
function bindingOf(caller: Caller, name: string, query: ListQuery): string {
  const filters = Object.entries(query).filter(([member]) => !PAGING.has(member));
  return canonicalJsonOf([name, caller.everyTenant ? '*' : caller.tenant, Object.fromEntries(filters)]);
}

/** Enough to tell a cursor that was changed or carried elsewhere. It guards no secret: a position is a row that its reader has seen. */
const CHECK_BYTES = 12;

function writeCursor(binding: string, position: readonly string[]): string {
  const text = JSON.stringify(position);
  return Buffer.concat([checkOf(binding, text), Buffer.from(text)]).toString('base64url');
}

const MAX_CURSOR_LENGTH = 1024;

function readCursor(binding: string, cursor: string): readonly string[] {
  const bytes = cursor.length > MAX_CURSOR_LENGTH ? undefined : Buffer.from(cursor, 'base64url');
  // Decoding passes over what is no base64url, so that many texts would be one cursor.
  if (bytes === undefined || bytes.toString('base64url') !== cursor) throw badCursor();
  const text = bytes.subarray(CHECK_BYTES).toString();
  if (!checkOf(binding, text).equals(bytes.subarray(0, CHECK_BYTES))) throw badCursor();
  return positionIn(text);
}

const MAX_POSITION_VALUES = 2;

/** Anybody can compute the check, so what it covers is read as strictly as all input. */
function positionIn(text: string): readonly string[] {
  const values = parsed(text);
  if (!Array.isArray(values) || values.length < 1 || values.length > MAX_POSITION_VALUES) throw badCursor();
  return values.map((value: unknown) => {
    if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) throw badCursor();
    return value;
  });
}

/** A JSON array of strings. Other JSON is not parsed, because the names of its members can change what JSON.parse reads later. */
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

function badCursor(): Refusal {
  return new Refusal(
    'invalid_parameter',
    'The cursor does not belong to this list. Use next_cursor of the previous page.',
    {
      param: 'cursor',
    },
  );
}
