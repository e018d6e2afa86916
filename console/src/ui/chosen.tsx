/** The actions on the selected rows of a list, and the selection of all that match. */

import type { ReactNode } from 'react';
import type { List } from '../api/list.ts';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import styles from './chosen.module.css';

interface ChosenProps {
  readonly list: List<unknown>;
  /** The number of selected rows; 0: nothing is shown. */
  readonly count: number;
  /** All rows that match are selected, also those that are not loaded. */
  readonly isEveryMatch: boolean;
  readonly texts: {
    readonly selected: (n: number) => string;
    readonly selectAll: (total: string) => string;
    readonly allSelected: (total: string) => string;
    readonly clear: string;
  };
  /** Undefined: only loaded rows can be selected. */
  readonly onEveryMatch: (() => void) | undefined;
  readonly onClear: () => void;
  /** @param total the number of all rows that match; undefined: only the selected rows */
  readonly children: (total: string | undefined) => ReactNode;
}

export function Chosen({ list, count, isEveryMatch, texts, onEveryMatch, onClear, children }: ChosenProps) {
  if (count === 0 || list.kind !== 'loaded') return null;
  const total = list.total === undefined ? undefined : common.total(list.total.rows, list.total.exceeds);
  const mayGrow = !isEveryMatch && total !== undefined && list.more !== undefined && count === list.rows.length;
  return (
    <div className={styles.chosen}>
      <span role="status">
        {isEveryMatch && total !== undefined ? texts.allSelected(total) : texts.selected(count)}
      </span>
      {mayGrow && onEveryMatch !== undefined ? (
        <Button tone="quiet" small onPress={onEveryMatch}>
          {texts.selectAll(total)}
        </Button>
      ) : null}
      {children(isEveryMatch ? total : undefined)}
      <Button tone="quiet" small onPress={onClear}>
        {texts.clear}
      </Button>
    </div>
  );
}
