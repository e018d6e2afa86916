/**
 * The forms that write one resource. Each holds the typed values, says whether they are unsaved, saves them, and shows
 * the answer. The leave guard and the save bar read the same state.
 */

import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { ProblemError } from '../../../client/index.ts';
import { isTaken } from '../ui/problem.tsx';
import { type DraftName, forgetReturned, returnedDraft, setUnsaved } from './drafts.ts';
import { useMe, useTenant } from './session.ts';

/** A resource with the ETag that it was read with. */
export interface Tagged<T> {
  readonly data: T;
  readonly etag: string | undefined;
}

/** The part of a form's state that the save bar shows. */
export interface Work<T = unknown> {
  readonly isChanged: boolean;
  /** The values are from before the sign-in. */
  readonly isReturned: boolean;
  readonly isSaving: boolean;
  /** The values on the screen are saved. */
  readonly isSaved: boolean;
  readonly error: unknown;
  /** Present after another caller saved first. */
  readonly conflict?: { readonly base: T; readonly newest: T } | undefined;
  /** Continues with the newest: members that were not edited here take its values. */
  readonly takeNewest?: () => void;
  /** Drops every change made here. Continues with the newest, if another caller saved first. */
  readonly discard: () => void;
}

interface SaveOptions {
  /** Saves also what would lock the caller out. */
  readonly force?: boolean;
}

interface Form<F extends object> {
  readonly draft: F;
  readonly set: (change: Partial<F>) => void;
  readonly save: (options?: SaveOptions) => void;
}

export interface Edit<T, F extends object> extends Work<T>, Form<F> {
  /** The resource as last read or saved. */
  readonly base: T;
}

export type Creation<F extends object> = Work & Form<F>;

interface EditOptions<T, F extends object> {
  /** Names the form among all forms of the tenant, such as `policy office-hours`. */
  readonly form: string;
  readonly loaded: Tagged<T>;
  /** The members that can be edited. They must not be secret. */
  readonly fieldsOf: (data: T) => F;
  readonly read: () => Promise<Tagged<T>>;
  /** Writes the changed members only. */
  readonly write: (changes: Partial<F>, etag: string | undefined, options: SaveOptions) => Promise<Tagged<T>>;
  readonly onSaved: (saved: T) => void;
}

/** Edits a resource. Sends nothing if nothing is changed. */
export function useEdit<T, F extends object>(options: EditOptions<T, F>): Edit<T, F> {
  const { form, loaded, fieldsOf, read, write, onSaved } = options;
  const { state, setState, isReturned, release } = useUnsaved({
    form,
    start: { base: loaded, draft: fieldsOf(loaded.data) },
    isUnsaved: ({ base, draft }) => isDifferent(fieldsOf(base.data), draft),
  });
  const { base, draft } = state;
  const [newest, setNewest] = useState<Tagged<T>>();
  const changes = changedMembers(fieldsOf(base.data), draft);
  const isChanged = isDifferent(fieldsOf(base.data), draft);
  // While nothing is changed here, a newer read takes the place of the base. Another action of the page may have made it.
  const [seen, setSeen] = useState(loaded);
  if (seen !== loaded) {
    setSeen(loaded);
    if (!isChanged) setState(() => ({ base: loaded, draft: fieldsOf(loaded.data) }));
  }
  const send = async (how: SaveOptions): Promise<Tagged<T>> => {
    try {
      return await write(changes, base.etag, how);
    } catch (error) {
      // If the newest cannot be read either, the refusal itself is shown.
      const found = isConflict(error) ? await read().catch(() => undefined) : undefined;
      if (found === undefined) throw error;
      // Only other members changed, for example because a button of the page disabled the resource.
      if (!isDifferent(fieldsOf(base.data), fieldsOf(found.data))) return write(changes, found.etag, how);
      setNewest(found);
      throw error;
    }
  };
  const saving = useMutation({
    mutationFn: ({ how }: { readonly how: SaveOptions; readonly sent: F }) =>
      isChanged ? send(how) : Promise.resolve(base),
    onSuccess: (saved, { sent }) => {
      release();
      // The user may have typed while the server was saving.
      setState((now) => ({ base: saved, draft: { ...fieldsOf(saved.data), ...changedMembers(sent, now.draft) } }));
      onSaved(saved.data);
    },
  });
  const continueWith = (next: Tagged<T>, kept: Partial<F>): void => {
    setState(() => ({ base: next, draft: { ...fieldsOf(next.data), ...kept } }));
    setNewest(undefined);
    saving.reset();
  };
  return {
    base: base.data,
    draft,
    set: (change) => setState((before) => ({ ...before, draft: { ...before.draft, ...change } })),
    isChanged,
    isReturned: isReturned && isChanged,
    save: (how = {}) => (saving.isPending ? undefined : saving.mutate({ how, sent: draft })),
    isSaving: saving.isPending,
    isSaved: saving.isSuccess && !isChanged,
    error: newest !== undefined && isConflict(saving.error) ? undefined : (saving.error ?? undefined),
    conflict: newest === undefined ? undefined : { base: base.data, newest: newest.data },
    takeNewest: () => {
      if (newest !== undefined) continueWith(newest, changes);
    },
    discard: () => continueWith(newest ?? base, {}),
  };
}

interface CreationOptions<F extends object, R> {
  /** Names the form among all forms of the tenant, such as `new policy`. */
  readonly form: string;
  /** The values of the empty form. They must not become secret. */
  readonly start: F;
  readonly send: (draft: F, options: SaveOptions) => Promise<R>;
  readonly onCreated: (made: R) => void | Promise<void>;
}

/** Creates a resource. */
export function useCreation<F extends object, R>(options: CreationOptions<F, R>): Creation<F> {
  const { form, start, send, onCreated } = options;
  const { state, setState, isReturned, release } = useUnsaved({
    form,
    start,
    isUnsaved: (draft) => isDifferent(start, draft),
  });
  const creating = useMutation({
    mutationFn: (how: SaveOptions) => send(state, how),
    onSuccess: async (made) => {
      release();
      await onCreated(made);
    },
  });
  const isChanged = isDifferent(start, state);
  return {
    draft: state,
    set: (change) => {
      // A request under way stays as it is: the form closes after it.
      if (creating.isPending) return;
      setState((before) => ({ ...before, ...change }));
      // The refused name may be corrected now. The next request shows whether it is.
      if (isTaken(creating.error)) creating.reset();
    },
    isChanged,
    isReturned: isReturned && isChanged,
    // Enter in the only field of a form sends it without its button.
    save: (how = {}) => (creating.isPending ? undefined : creating.mutate(how)),
    isSaving: creating.isPending,
    isSaved: false,
    error: creating.error ?? undefined,
    discard: () => {
      setState(() => start);
      creating.reset();
    },
  };
}

interface UnsavedOptions<S extends object> {
  readonly form: string;
  readonly start: S;
  readonly isUnsaved: (state: S) => boolean;
}

/** The state of a form, which the leave guard protects while it is unsaved and which survives a new sign-in. */
function useUnsaved<S extends object>({ form, start, isUnsaved }: UnsavedOptions<S>) {
  const user = useMe().id;
  const tenant = useTenant().id;
  const name: DraftName = { user, tenant, form };
  const [{ state, isReturned }, setHeld] = useState(() => {
    const draft = returnedDraft(name);
    return isLike(start, draft) ? { state: draft, isReturned: true } : { state: start, isReturned: false };
  });
  const kept = isUnsaved(state) ? state : undefined;
  useEffect(() => {
    setUnsaved({ user, tenant, form }, kept);
    return () => setUnsaved({ user, tenant, form }, undefined);
  }, [user, tenant, form, kept]);
  useEffect(() => forgetReturned({ user, tenant, form }), [user, tenant, form]);
  return {
    state,
    setState: (change: (before: S) => S) =>
      setHeld((before) => ({ state: change(before.state), isReturned: before.isReturned })),
    isReturned,
    /** The state is saved: leaving the form asks nothing. */
    release: () => setUnsaved(name, undefined),
  };
}

/** Reports whether a stored draft has the shape of the form. An absent member was undefined before it was stored. */
function isLike<S extends object>(start: S, draft: unknown): draft is S {
  if (typeof draft !== 'object' || draft === null || Array.isArray(draft)) return false;
  const members = new Map<string, unknown>(Object.entries(draft));
  return Object.entries(start).every(([name, value]) => {
    const other = members.get(name);
    if (other === undefined || value === undefined) return true;
    return typeof other === typeof value && Array.isArray(other) === Array.isArray(value);
  });
}

function isConflict(error: unknown): boolean {
  return error instanceof ProblemError && error.code === 'precondition_failed';
}

/** The members whose JSON differs, with their new values. */
export function changedMembers<F extends object>(before: F, after: F): Partial<F> {
  const changes: Partial<F> = {};
  // A member that is undefined is absent after it was stored.
  for (const name in { ...before, ...after }) {
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) changes[name] = after[name];
  }
  return changes;
}

function isDifferent<F extends object>(before: F, after: F): boolean {
  return Object.keys(changedMembers(before, after)).length > 0;
}
