import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { sentenceOf } from '../../ui/problem.tsx';

/** Says that the policy would deny its author the management of policies, and offers to save it all the same. */
export function LockOut({ error, onForce }: { readonly error: unknown; readonly onForce: () => void }) {
  return (
    <Note
      tone="deny"
      isLive
      action={
        <Button small tone="danger" onPress={onForce}>
          {text.saveAnyway}
        </Button>
      }
    >
      {text.lockOut}
      <Small>{sentenceOf(error)}</Small>
    </Note>
  );
}
