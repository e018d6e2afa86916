import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import styles from './conflict.module.css';
import { Diff } from './diff.tsx';
import { Note, Small } from './mark.tsx';

/** Says that another caller saved first, shows that change, and offers to continue with or without the typed input. */
export function Conflict({
  base,
  newest,
  onTakeOver,
  onDiscard,
}: {
  readonly base: unknown;
  readonly newest: unknown;
  readonly onTakeOver: () => void;
  /** Absent: closing the form is the way to drop the input. */
  readonly onDiscard?: (() => void) | undefined;
}) {
  return (
    <>
      <Note tone="care" isLive>
        {common.faster}
        <Small>{common.takeOverSays}</Small>
        <div className={styles.ways}>
          <Button small onPress={onTakeOver}>
            {common.takeOver}
          </Button>
          {onDiscard === undefined ? null : (
            <Button small onPress={onDiscard}>
              {common.discard}
            </Button>
          )}
        </div>
      </Note>
      <Small>{common.theirChange}</Small>
      <Diff before={base} after={newest} />
    </>
  );
}
