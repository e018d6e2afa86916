/**
 * The end of every form: saving, discarding, and the answer to the last save. It stays inside the window, so the answer
 * shows where the button was pressed. A refusal of one field moves the focus to that field.
 */

import { type ReactNode, type RefObject, useLayoutEffect, useRef, useState } from 'react';
import { ProblemError } from '../../../client/index.ts';
import type { Work } from '../api/edit.ts';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { classes } from './classes.ts';
import { Conflict } from './conflict.tsx';
import { Note } from './mark.tsx';
import { Refused } from './refused.tsx';
import styles from './save-bar.module.css';

export interface SaveBarProps<T> {
  readonly work: Work<T>;
  /** The text of the button that saves. */
  readonly action: string;
  /** The effect of the save, shown after it. */
  readonly saved?: string;
  /** The id of the form, for a bar at the foot of a drawer. Absent: the bar is inside the form. */
  readonly form?: string;
  /** Why the form cannot be saved now; undefined: it can. */
  readonly disabledReason?: string | undefined;
  /** A refusal in other words than the usual ones, for example with a way to proceed. */
  readonly refusal?: ReactNode;
  /** The part of the resource that a conflict compares. */
  readonly comparable?: (data: T) => unknown;
  /** Closes the form. */
  readonly onClose?: () => void;
  /** Other actions, or what is being changed. */
  readonly children?: ReactNode;
}

export function SaveBar<T>(props: SaveBarProps<T>) {
  const { work, action, saved, form, disabledReason, refusal, onClose, children } = props;
  const { isChanged, isSaving, isSaved, isReturned, error } = work;
  const bar = useRef<HTMLDivElement>(null);
  const isAtField = useFieldAtFault(error, bar, form);
  useFocusAfterSave(isSaved, bar);
  return (
    <div ref={bar} className={classes(styles.bar, form === undefined && styles.inForm)}>
      <div className={styles.answer}>
        <ConflictOf {...props} />
        {error === undefined ? null : (refusal ?? <Answer error={error} isAtField={isAtField} />)}
        {isSaved ? (
          <Note tone="good" isLive>
            {saved ?? common.saved}
          </Note>
        ) : null}
        {isReturned && error === undefined ? <Note isLive>{common.draftReturned}</Note> : null}
      </div>
      <div className={styles.acts}>
        {children}
        <span className={styles.state}>{disabledReason ?? (isChanged ? common.unsaved : null)}</span>
        {isChanged && onClose === undefined ? (
          <Button tone="quiet" onPress={work.discard}>
            {common.discardChanges}
          </Button>
        ) : null}
        {onClose === undefined ? null : (
          <Button tone="quiet" onPress={onClose}>
            {isSaved ? common.close : common.cancel}
          </Button>
        )}
        <Button
          tone="primary"
          type="submit"
          form={form}
          isPending={isSaving}
          disabledReason={disabledReason}
          isReasonShown
        >
          {action}
        </Button>
      </div>
    </div>
  );
}

function ConflictOf<T>({ work, comparable = (data) => data }: SaveBarProps<T>) {
  const { conflict, takeNewest, discard } = work;
  if (conflict === undefined || takeNewest === undefined) return null;
  return (
    <Conflict
      base={comparable(conflict.base)}
      newest={comparable(conflict.newest)}
      onTakeOver={takeNewest}
      onDiscard={discard}
    />
  );
}

function Answer({ error, isAtField }: { readonly error: unknown; readonly isAtField: boolean }) {
  if (!isAtField) return <Refused error={error} />;
  return (
    <Note tone="deny" isLive>
      {common.atField}
    </Note>
  );
}

/** The button that saved cannot be pressed any more, which takes the focus away. Escape works only where the focus is. */
function useFocusAfterSave(isSaved: boolean, bar: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    if (isSaved && document.activeElement === document.body) {
      [...(bar.current?.querySelectorAll('button') ?? [])].at(-1)?.focus();
    }
  }, [isSaved, bar]);
}

const AT_FAULT = '[aria-invalid=true], [data-fault]';
const FOCUSABLE = 'input:not([type=hidden], [disabled]), textarea, select, button:not([disabled])';

/**
 * Moves the focus to the first field that the refusal is about. Returns true if the fields show all of the refusal.
 *
 * @param form the id of the form; absent: the form around the bar
 */
function useFieldAtFault(error: unknown, bar: RefObject<HTMLElement | null>, form: string | undefined): boolean {
  const [isAtField, setAtField] = useState(false);
  useLayoutEffect(() => {
    if (error === undefined) return;
    const scope = form === undefined ? bar.current?.closest('form') : document.getElementById(form);
    const fields = [...(scope?.querySelectorAll<HTMLElement>(AT_FAULT) ?? [])];
    const first = fields[0];
    const focused = first?.matches(FOCUSABLE) ? first : first?.querySelector<HTMLElement>(FOCUSABLE);
    focused?.focus();
    focused?.scrollIntoView({ block: 'center' });
    const named = error instanceof ProblemError ? error.errors.length : 0;
    setAtField(fields.length >= Math.max(1, named));
  }, [error, bar, form]);
  return isAtField;
}
