import { useState } from 'react';

let lastId = 0;

function nextId(): number {
  lastId++;
  return lastId;
}

interface RowIds {
  readonly ids: readonly number[];
  /** Call it with the position of a row that is being removed, so that the other rows keep their ids. */
  readonly removeId: (at: number) => void;
}

/** Ids of the rows of a field whose texts may be equal. */
export function useRowIds(count: number): RowIds {
  const [ids, setIds] = useState(() => Array.from({ length: count }, nextId));
  const known = ids.length === count ? ids : Array.from({ length: count }, (_, index) => ids[index] ?? nextId());
  if (known !== ids) setIds(known);
  return { ids: known, removeId: (at) => setIds((before) => before.filter((_, index) => index !== at)) };
}
