import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ProblemError } from '../../../client/index.ts';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { Ask } from './overlay.tsx';
import { Refused } from './refused.tsx';
import { useShownOnce } from './shown-once.ts';

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
  /** @param isForced whether the user confirmed again what the server refused with the code of `force` */
  readonly perform: (isForced: boolean) => Promise<unknown>;
  /** Absent: a refused action stays refused. */
  readonly force?: { readonly code: ProblemError['code']; readonly action: string };
  readonly onClose: () => void;
  /** Called after the action, when the dialog is closed: the page may no longer show what the question was about. */
  readonly onDone?: () => unknown;
  /** Its answer holds a secret that is shown once. */
  readonly showsSecret?: boolean;
  /** Shows the failure of the action. Default: `Refused`. */
  readonly refusal?: (error: Error) => ReactNode;
}

/**
 * Reports whether a text is the word as a page shows it: it shows spaces in a row as one, and both forms of an accent
 * alike.
 */
function isTyped(text: string, word: string): boolean {
  const shown = (one: string): string => one.normalize('NFC').replaceAll(/\s+/g, ' ').trim();
  return shown(text) === shown(word);
}

/** Asks before an action, and performs it. The dialog closes when it has succeeded; a failure shows in the dialog. */
export function Confirm(props: ConfirmProps) {
  const {
    title,
    children,
    action,
    tone = 'danger',
    word,
    disabledReason,
    perform,
    force,
    onClose,
    onDone,
    showsSecret = false,
    refusal = (error) => <Refused error={error} />,
  } = props;
  const [typed, setTyped] = useState('');
  const run = useMutation({
    mutationFn: perform,
    onSuccess: async () => {
      onClose();
      await onDone?.();
    },
  });
  useShownOnce(showsSecret && run.isPending);
  const { error } = run;
  const mayForce = force !== undefined && error instanceof ProblemError && error.code === force.code;
  const mayConfirm = word === undefined || isTyped(typed, word);
  return (
    <Ask
      title={title}
      // The answer must be seen.
      onClose={run.isPending ? undefined : onClose}
      actions={
        <>
          <Button onPress={onClose} isPending={run.isPending}>
            {common.cancel}
          </Button>
          <Button
            tone={tone}
            onPress={() => run.mutate(mayForce)}
            isPending={run.isPending}
            disabledReason={mayConfirm ? disabledReason : common.typeToConfirm(word)}
          >
            {mayForce ? force.action : action}
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
      {error === null ? null : refusal(error)}
    </Ask>
  );
}
