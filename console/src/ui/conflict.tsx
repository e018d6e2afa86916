import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { Diff } from './diff.tsx';
import { Note, Small } from './mark.tsx';

/** Says that somebody else saved first, what they changed, and how to go on without losing what is typed. */
export function Conflict({
  base,
  newest,
  onTakeOver,
}: {
  readonly base: unknown;
  readonly newest: unknown;
  readonly onTakeOver: () => void;
}) {
  return (
    <>
      <Note
        tone="care"
        isLive
        action={
          <Button small onPress={onTakeOver}>
            {common.takeOver}
          </Button>
        }
      >
        {common.faster}
        <Small>{common.takeOverSays}</Small>
      </Note>
      <Small>{common.theirChange}</Small>
      <Diff before={base} after={newest} />
    </>
  );
}
