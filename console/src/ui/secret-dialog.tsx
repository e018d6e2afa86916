import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Ask } from './overlay.tsx';
import { useShownOnce } from './shown-once.ts';

interface SecretDialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** The text of the button that closes it. */
  readonly saved: string;
  readonly onClose: () => void;
  /** Further buttons. */
  readonly actions?: ReactNode;
}

/** A secret on the screen for the only time. Neither Esc nor a press outside closes it. */
export function SecretDialog({ title, children, saved, onClose, actions }: SecretDialogProps) {
  const release = useShownOnce(true);
  const close = (): void => {
    // Closing it may lead to another page.
    release();
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
