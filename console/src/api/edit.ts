/** An edit of one resource: the typed values, their changes, and the conflict with another save. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { ProblemError } from '../../../client/index.ts';

/** A resource with the ETag that it was read with. */
export interface Tagged<T> {
  readonly data: T;
  readonly etag: string | undefined;
}

interface EditOptions<T, F extends object> {
  readonly loaded: Tagged<T>;
  /** The members that can be edited. */
  readonly fieldsOf: (data: T) => F;
  readonly read: () => Promise<Tagged<T>>;
  /** Writes the changed members only. */
  readonly write: (changes: Partial<F>, etag: string | undefined) => Promise<Tagged<T>>;
  readonly onSaved: (saved: T) => void;
}

export interface Edit<T, F extends object> {
  /** The resource as last read or saved. */
  readonly base: T;
  readonly draft: F;
  readonly set: (change: Partial<F>) => void;
  readonly isChanged: boolean;
  /** Sends nothing if nothing is changed. */
  readonly save: () => void;
  readonly isSaving: boolean;
  readonly isSaved: boolean;
  readonly error: unknown;
  /** Present after another caller saved first. */
  readonly conflict: { readonly base: T; readonly newest: T } | undefined;
  /** Continues with the newest: members that were not edited here take its values. */
  readonly takeNewest: () => void;
  /** Continues with the newest, and drops every change made here. */
  readonly discard: () => void;
}

export function useEdit<T, F extends object>({
  loaded,
  fieldsOf,
  read,
  write,
  onSaved,
}: EditOptions<T, F>): Edit<T, F> {
  const [base, setBase] = useState(loaded);
  const [draft, setDraft] = useState(() => fieldsOf(loaded.data));
  const [newest, setNewest] = useState<Tagged<T>>();
  const changes = changedMembers(fieldsOf(base.data), draft);
  const isChanged = Object.keys(changes).length > 0;
  const saving = useMutation({
    mutationFn: () => (isChanged ? write(changes, base.etag) : Promise.resolve(base)),
    onSuccess: (saved) => {
      setBase(saved);
      setDraft(fieldsOf(saved.data));
      onSaved(saved.data);
    },
    onError: async (error) => {
      // If the newest cannot be read either, the refusal itself is shown.
      if (isConflict(error)) await read().then(setNewest, () => undefined);
    },
  });
  const continueWith = (next: Tagged<T>, kept: Partial<F>): void => {
    setDraft({ ...fieldsOf(next.data), ...kept });
    setBase(next);
    setNewest(undefined);
    saving.reset();
  };
  return {
    base: base.data,
    draft,
    set: (change) => setDraft((before) => ({ ...before, ...change })),
    isChanged,
    save: () => saving.mutate(),
    isSaving: saving.isPending,
    isSaved: saving.isSuccess && !isChanged,
    error: newest !== undefined && isConflict(saving.error) ? undefined : (saving.error ?? undefined),
    conflict: newest === undefined ? undefined : { base: base.data, newest: newest.data },
    takeNewest: () => {
      if (newest !== undefined) continueWith(newest, changes);
    },
    discard: () => {
      if (newest !== undefined) continueWith(newest, {});
    },
  };
}

function isConflict(error: unknown): boolean {
  return error instanceof ProblemError && error.code === 'precondition_failed';
}

/** The members whose JSON differs, with their new values. */
export function changedMembers<F extends object>(before: F, after: F): Partial<F> {
  const changes: Partial<F> = {};
  for (const name in after) {
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) changes[name] = after[name];
  }
  return changes;
}
