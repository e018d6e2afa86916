/**
 * Unsaved work: the changed forms of this tab, the secrets that it shows once, and the drafts that survive a new sign-in.
 *
 * When the session ends, the drafts go to the tab's sessionStorage. They come back to the same form of the same user and
 * tenant, and a sign-out or another user's sign-in deletes them. A draft must not hold a secret.
 */

const STORED = 'postern.drafts';

/** The user and tenant that a draft belongs to, and the form. */
export interface DraftName {
  readonly user: string;
  readonly tenant: string;
  readonly form: string;
}

/** The changed forms, by name. */
const unsaved = new Map<string, unknown>();
/** The secrets on the screen that cannot be shown again. */
const shown = new Set<symbol>();
/** Drafts from before the sign-in whose forms have not opened yet. */
const returned = new Map<string, unknown>();

function keyOf({ user, tenant, form }: DraftName): string {
  return JSON.stringify([user, tenant, form]);
}

export function hasUnsaved(): boolean {
  return unsaved.size > 0 || shown.size > 0;
}

export function hasShown(): boolean {
  return shown.size > 0;
}

/** Registers a secret while it is on the screen for the only time. */
export function setShown(secret: symbol, isShown: boolean): void {
  if (isShown) shown.add(secret);
  else shown.delete(secret);
}

/** Registers the state of a changed form; undefined: nothing of it is unsaved. */
export function setUnsaved(name: DraftName, state: unknown): void {
  if (state === undefined) unsaved.delete(keyOf(name));
  else unsaved.set(keyOf(name), state);
}

/** The user chose to leave without saving. */
export function abandonUnsaved(): void {
  unsaved.clear();
  shown.clear();
}

/** Stores the drafts, because the session has ended and their forms close. */
export function storeDrafts(): void {
  const drafts = [...returned, ...unsaved];
  if (drafts.length > 0) sessionStorage.setItem(STORED, JSON.stringify(drafts));
  returned.clear();
  unsaved.clear();
}

/** Deletes every stored draft. */
export function deleteDrafts(): void {
  unsaved.clear();
  returned.clear();
  sessionStorage.removeItem(STORED);
}

/** Takes the stored drafts of a user out of the storage, and deletes those of other users. */
export function restoreDrafts(user: string): void {
  const stored = sessionStorage.getItem(STORED);
  if (stored === null) return;
  deleteDrafts();
  for (const [key, state] of entriesOf(stored)) {
    if (key.startsWith(`${JSON.stringify([user]).slice(0, -1)},`)) returned.set(key, state);
  }
}

function entriesOf(stored: string): readonly (readonly [string, unknown])[] {
  const entries: readonly (readonly [string, unknown])[] = JSON.parse(stored);
  return entries;
}

/** The draft of a form from before the sign-in. */
export function returnedDraft(name: DraftName): unknown {
  return returned.get(keyOf(name));
}

/** The form is open and has its draft. */
export function forgetReturned(name: DraftName): void {
  returned.delete(keyOf(name));
}
