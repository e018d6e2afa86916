/** The empty state of a list: there is nothing yet, or the search and the filters leave everything out. */

import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { Empty } from './mark.tsx';

export interface ListEmptyProps {
  readonly texts: {
    readonly empty: string;
    readonly emptySays: string;
    readonly unmatched: string;
    readonly unmatchedSays: string;
  };
  /** Removes the search and every filter; undefined: none is set. */
  readonly onShowAll: (() => void) | undefined;
}

export function ListEmpty({ texts, onShowAll }: ListEmptyProps) {
  if (onShowAll === undefined) return <Empty title={texts.empty}>{texts.emptySays}</Empty>;
  return (
    <Empty title={texts.unmatched} action={<Button onPress={onShowAll}>{common.showAll}</Button>}>
      {texts.unmatchedSays}
    </Empty>
  );
}
