import { type ReactNode, useState } from 'react';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { Ask } from './overlay.tsx';

interface ConfirmProps {
  readonly title: string;
  /** Says what the action does. */
  readonly children: ReactNode;
  /** The button's text. */
  readonly action: string;
  readonly tone?: 'primary' | 'danger';
  /** The text that the user types before the action is possible. Absent: none. */
  readonly word?: string | undefined;
  /** Why the action is not possible yet, for example because an input is missing; undefined: it is. */
  readonly disabledReason?: string | undefined;
  readonly isPending: boolean;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  /** The server's refusal, shown below everything else. */
  readonly refusal?: ReactNode;
}

/** Reports whether a text is the word as a page shows it: it shows spaces in a row as one, and both forms of an accent alike. */
export function isTyped(text: string, word: string): boolean {
  const shown = (one: string): string => one.normalize('NFC').replaceAll(/\s+/g, ' ').trim();
  return shown(text) === shown(word);
}

/**
 * Asks before an action that takes something away. The dialog stays open until the caller closes it, so that a refusal
 * shows in it.
 */
export function Confirm(props: ConfirmProps) {
  const {
    title,
    children,
    action,
    tone = 'danger',
    word,
    disabledReason,
    isPending,
    onConfirm,
    onClose,
    refusal,
  } = props;
  const [typed, setTyped] = useState('');
  const mayConfirm = word === undefined || isTyped(typed, word);
  return (
    <Ask
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button
            tone={tone}
            onPress={onConfirm}
            isPending={isPending}
            disabledReason={mayConfirm ? disabledReason : common.typeToConfirm(word)}
          >
            {action}
          </Button>
        </>
      }
    >
      {children}
      {word === undefined ? null : (
        <TextField
          label={common.typeToConfirm(word)}
          value={typed}
          onChange={setTyped}
          autoComplete="off"
          isMono
          autoFocus
        />
      )}
      {refusal}
    </Ask>
  );
}
