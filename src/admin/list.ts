/** Lists in pages: a cursor says after which row the next page begins, so pages stay true while rows come and go. */

import { Refusal } from '../domain/errors.ts';
import type { Page, TenantScope } from '../store/queries/rows.ts';
import type { Caller } from './caller.ts';

export const DEFAULT_LIMIT = 50;
export const MAX_LIMIT = 200;

export interface ListQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

export interface List<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

export function scopeOf(caller: Caller): TenantScope {
  return caller.everyTenant ? { kind: 'every' } : { kind: 'one', tenant: caller.tenant };
}

/**
 * Fetches one page and wraps it.
 * @param name of the list, to which its cursors are bound, as they are to the tenant
 * @param position the sort values of a row
 * @throws Refusal `invalid_parameter` for a cursor that is none, or another list's
 */
export async function paged<Row, T>(
  caller: Caller,
  name: string,
  query: ListQuery,
  fetch: (page: Page) => Promise<readonly Row[]>,
  position: (row: Row) => readonly string[],
  show: (row: Row) => T,
): Promise<List<T>> {
  const limit = query.limit ?? DEFAULT_LIMIT;
  const binding = `${name} ${caller.everyTenant ? '*' : caller.tenant}`;
  const after = query.cursor === undefined ? undefined : readCursor(binding, query.cursor);
  const rows = await fetch({ after, take: limit + 1 });
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    object: 'list',
    data: shown.map(show),
    has_more: more,
    next_cursor: more ? writeCursor(binding, position(last)) : null,
  };
}

function writeCursor(binding: string, position: readonly string[]): string {
  return Buffer.from(JSON.stringify([binding, ...position])).toString('base64url');
}

const MAX_CURSOR_LENGTH = 1024;
const MAX_POSITION_VALUES = 2;

function readCursor(binding: string, cursor: string): readonly string[] {
  const parts = cursor.length > MAX_CURSOR_LENGTH ? undefined : parsed(Buffer.from(cursor, 'base64url').toString());
  if (!Array.isArray(parts) || parts.length < 2 || parts.length > 1 + MAX_POSITION_VALUES || parts[0] !== binding)
    throw badCursor();
  return parts.slice(1).map((part: unknown) => {
    if (typeof part !== 'string' || part.includes('\0')) throw badCursor();
    return part;
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function badCursor(): Refusal {
  return new Refusal('invalid_parameter', 'The cursor does not belong to this list. Take next_cursor of the page before.', {
    param: 'cursor',
  });
}
