import { type ReactNode, useEffect, useState } from 'react';
import { setShown } from '../api/drafts.ts';
import { Button } from './button.tsx';
import { Ask } from './overlay.tsx';

interface SecretDialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** The text of the button that closes it. */
  readonly saved: string;
  readonly onClose: () => void;
  /** Further buttons. */
  readonly actions?: ReactNode;
}

/**
 * A secret on the screen for the only time. Neither Esc nor a press outside closes it, and the leave guard asks before
 * the back button or the end of the tab takes it away.
 */
export function SecretDialog({ title, children, saved, onClose, actions }: SecretDialogProps) {
  const [secret] = useState(() => Symbol(title));
  useEffect(() => {
    setShown(secret, true);
    return () => setShown(secret, false);
  }, [secret]);
  const close = (): void => {
    // Closing it may lead to another page.
    setShown(secret, false);
    onClose();
  };
  return (
    <Ask
      title={title}
      actions={
        <>
          {actions}
          <Button onPress={close}>{saved}</Button>
        </>
      }
    >
      {children}
    </Ask>
  );
}
