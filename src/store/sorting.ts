/**
 * The order of a list by one value of its rows, and then by id. A page begins after the position of a row: its value
 * and its id as text. Rows without a value come last in both directions; their position is the id.
 */

import type { NamedQuery } from './prepared.ts';

export interface Sorting {
  /** SQL of the value. */
  readonly value: string;
  readonly kind: 'time' | 'number' | 'text';
  readonly descending: boolean;
  /** SQL of a text that no two rows share. */
  readonly id: string;
  /** True if every row has a value, so that an index can begin at a position. */
  readonly required?: boolean;
}

/** Returns the list of `order by`. */
export function sortOrder({ value, kind, descending, id, required }: Sorting): string {
  const direction = descending ? 'desc' : 'asc';
  return `${ordered(value, kind)} ${direction}${required === true ? '' : ' nulls last'}, ${id} ${direction}`;
}

/** Returns the SQL of a row's position, of type `text[]`. */
export function sortPosition({ value, kind, id }: Sorting): string {
  // An exact number: the text of a time depends on the session, and a time of JavaScript has no microseconds.
  const text = kind === 'time' ? `cast(extract(epoch from ${value}) * 1000000 as bigint)` : value;
  return `array_remove(array[cast(${text} as text), ${id}], null)`;
}

/**
 * Returns the condition on the rows of a page, and its bindings. No row comes after a position that no row can have.
 * @param after the position of the previous page's last row; undefined = the page is the first
 */
export function conditionAfter(sorting: Sorting, after: readonly string[] | undefined): NamedQuery {
  const { value, kind, descending, id, required } = sorting;
  if (after === undefined) return { sql: 'true', bindings: {} };
  const than = descending ? '<' : '>';
  const [first = '', last] = after;
  if (last === undefined) return { sql: `(${value} is null and ${id} ${than} :afterId)`, bindings: { afterId: first } };
  if (!FORMS[kind].test(first)) return { sql: 'false', bindings: {} };
  const later = `(${ordered(value, kind)}, ${id}) ${than} (${STORED[kind]}, :afterId)`;
  return {
    sql: required === true ? later : `(${later} or ${value} is null)`,
    bindings: { afterValue: kind === 'time' ? Number(first) : first, afterId: last },
  };
}

/** The texts of positions. The microseconds of a time are an exact number of JavaScript. */
const FORMS = { time: /^-?\d{1,15}$|^[1-8]\d{15}$/, number: /^-?\d{1,40}(?:\.\d{1,20})?$/, text: /^/ } as const;

/** SQL of the value of `:afterValue`. */
const STORED = {
  time: "(timestamptz 'epoch' + :afterValue * interval '1 microsecond')",
  number: 'cast(:afterValue as numeric)',
  text: ':afterValue',
} as const;

/** Text has the order of its code points, which does not depend on the database's locale. */
function ordered(value: string, kind: Sorting['kind']): string {
  return kind === 'text' ? `${value} collate "C"` : value;
}
