import { useState } from 'react';
import type { List } from '../../api/list.ts';

const PAGE = 50;

/** A list that the page has as a whole, of which it shows a part and more on request. */
export function usePartList<T>(rows: readonly T[]): List<T> {
  const [shown, setShown] = useState(PAGE);
  return {
    kind: 'loaded',
    rows: rows.slice(0, shown),
    more: shown < rows.length ? () => setShown(shown + PAGE) : undefined,
    isLoadingMore: false,
    total: { rows: rows.length, exceeds: false },
  };
}
