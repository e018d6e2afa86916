/**
 * The leave guard: asks before a link, the back button, Escape, a press beside a drawer, a sign-out or the end of the tab
 * loses unsaved work, or a secret that is shown once. Forms report their unsaved work in `api/edit.ts`.
 */

import { type ShouldBlockFn, useBlocker } from '@tanstack/react-router';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef, useState } from 'react';
import { abandonUnsaved, hasShown, hasUnsaved } from '../api/drafts.ts';
import { common } from '../text/en/common.ts';
import { Button } from '../ui/button.tsx';
import { Ask } from '../ui/overlay.tsx';

type MayLeave = () => Promise<boolean>;

const MayLeaveContext = createContext<MayLeave>(async () => true);

/** Returns a function that asks whether unsaved work may be lost. Without unsaved work it asks nothing. */
export function useMayLeave(): MayLeave {
  return useContext(MayLeaveContext);
}

export function LeaveGuard({ children }: { readonly children: ReactNode }) {
  const [asked, setAsked] = useState<'work' | 'secret'>();
  const lastField = useRef<HTMLElement>(null);
  useEffect(() => {
    const note = ({ target }: FocusEvent): void => {
      if (target instanceof HTMLElement && target.closest('form') !== null) lastField.current = target;
    };
    document.addEventListener('focusin', note);
    return () => document.removeEventListener('focusin', note);
  }, []);
  const answer = useRef<(mayLeave: boolean) => void>(() => undefined);
  const mayLeave = useCallback(async () => {
    if (!hasUnsaved()) return true;
    // The browser's back button works while the question is open: the later step replaces the earlier one.
    answer.current(false);
    // A press beside a drawer took the focus away. The question gives it back to the element that has it now.
    if (document.activeElement === document.body) lastField.current?.focus();
    setAsked(hasShown() ? 'secret' : 'work');
    return new Promise<boolean>((resolve) => {
      answer.current = resolve;
    });
  }, []);
  const reply = (isLeaving: boolean): void => {
    if (isLeaving) abandonUnsaved();
    setAsked(undefined);
    answer.current(isLeaving);
  };
  const shouldBlock = useCallback<ShouldBlockFn>(
    async ({ current, next }) => isElsewhere(current, next) && !(await mayLeave()),
    [mayLeave],
  );
  useBlocker({ shouldBlockFn: shouldBlock, enableBeforeUnload: hasUnsaved });
  return (
    <MayLeaveContext value={mayLeave}>
      {children}
      {asked === undefined ? null : (
        <Ask
          title={common.leaveTitles[asked]}
          onClose={() => reply(false)}
          actions={
            <>
              <Button onPress={() => reply(true)}>{common.leaves[asked]}</Button>
              <Button tone="primary" autoFocus onPress={() => reply(false)}>
                {common.stays[asked]}
              </Button>
            </>
          }
        >
          <p>{common.leaveSays[asked]}</p>
        </Ask>
      )}
    </MayLeaveContext>
  );
}

interface Place {
  readonly pathname: string;
  readonly search: object;
}

/** A step within the page, such as the link to its content, closes no form. */
function isElsewhere(current: Place, next: Place): boolean {
  return current.pathname !== next.pathname || JSON.stringify(current.search) !== JSON.stringify(next.search);
}
