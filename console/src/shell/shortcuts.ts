/**
 * The keys that work on every screen: the palette, the page's search, a new key, Explain, sending the open form, and the
 * list of these keys.
 *
 * Single keys have no effect in fields, menus and lists. While a dialog is open, the shortcut sends only its form.
 */

import { useNavigate } from '@tanstack/react-router';
import { useEffect, useEffectEvent } from 'react';

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** How long after C a K still means "create a key". */
const SEQUENCE_MS = 1_500;
const TYPED_IN =
  'input, textarea, select, [contenteditable], [role=listbox], [role=menu], [role=combobox], [role=textbox]';
const DIALOG = '[role=dialog], [role=alertdialog]';

interface Shortcuts {
  /** Also while its code is being loaded. */
  readonly isPaletteOpen: boolean;
  readonly onPalette: () => void;
  readonly onHelp: () => void;
  /** Called when a chord may follow. */
  readonly onModifier: () => void;
}

export function useShortcuts({ isPaletteOpen, onPalette, onHelp, onModifier }: Shortcuts): void {
  const navigate = useNavigate();
  const act = useEffectEvent((key: Shortcut): boolean => {
    switch (key) {
      case 'palette':
        onPalette();
        return true;
      case 'help':
        onHelp();
        return true;
      case 'search':
        return focusSearch();
      case 'create key':
        void navigate({ to: '/keys', search: { open: 'new' } });
        return true;
      case 'explain':
        void navigate({ to: '/explain', search: {} });
        return true;
      case 'send':
        return sendForm();
      default:
        return key satisfies never;
    }
  });
  const place = useEffectEvent((target: EventTarget | null): Place => (isPaletteOpen ? 'palette' : placeOf(target)));
  const modifier = useEffectEvent(onModifier);
  useEffect(() => {
    let sinceC = Number.NEGATIVE_INFINITY;
    const listen = (event: KeyboardEvent): void => {
      const isAfterC = event.timeStamp - sinceC <= SEQUENCE_MS;
      sinceC = Number.NEGATIVE_INFINITY;
      if (event.defaultPrevented || event.isComposing || event.repeat) return;
      if (event.key === 'Control' || event.key === 'Meta') modifier();
      const at = place(event.target);
      if (isPlain(event) && at === 'page' && event.key.toLowerCase() === 'c') {
        sinceC = event.timeStamp;
        return;
      }
      const key = shortcutOf(event, at, isAfterC);
      if (key !== undefined && act(key)) event.preventDefault();
    };
    // Before the element with the focus: an option of a list would take Enter for itself.
    const send = (event: KeyboardEvent): void => {
      if (event.isComposing || event.repeat || shortcutOf(event, place(event.target), false) !== 'send') return;
      if (!act('send')) return;
      event.preventDefault();
      event.stopPropagation();
    };
    document.addEventListener('keydown', send, { capture: true });
    document.addEventListener('keydown', listen);
    return () => {
      document.removeEventListener('keydown', send, { capture: true });
      document.removeEventListener('keydown', listen);
    };
  }, []);
}

type Shortcut = 'palette' | 'help' | 'search' | 'create key' | 'explain' | 'send';
type Place = 'page' | 'field' | 'dialog' | 'palette';

function shortcutOf(event: KeyboardEvent, place: Place, isAfterC: boolean): Shortcut | undefined {
  const { key } = event;
  if (isChord(event)) {
    if (key.toLowerCase() === 'k') return place === 'dialog' ? undefined : 'palette';
    return key === 'Enter' && place !== 'palette' ? 'send' : undefined;
  }
  if (!isPlain(event) || place !== 'page') return undefined;
  if (key === '/') return 'search';
  if (key === '?') return 'help';
  if (isAfterC && key.toLowerCase() === 'k') return 'create key';
  return key.toLowerCase() === 'e' ? 'explain' : undefined;
}

/** On a Mac, Control belongs to the text fields: Control and K deletes to the end of the line. */
function isChord({ metaKey, ctrlKey, altKey, shiftKey }: KeyboardEvent): boolean {
  return (isMac ? metaKey && !ctrlKey : ctrlKey && !metaKey) && !altKey && !shiftKey;
}

/** Shift is left alone: on some keyboards it makes the slash. */
function isPlain({ metaKey, ctrlKey, altKey }: KeyboardEvent): boolean {
  return !metaKey && !ctrlKey && !altKey;
}

function placeOf(target: EventTarget | null): Place {
  if (document.querySelector(DIALOG) !== null) return 'dialog';
  return target instanceof Element && target.closest(TYPED_IN) !== null ? 'field' : 'page';
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>('main [data-search]');
  if (field === null) return false;
  field.focus();
  field.select();
  return true;
}

/**
 * Presses the button of the form that is open: in the topmost dialog, else where the focus is, else the only one of the
 * page.
 */
function sendForm(): boolean {
  const dialog = [...document.querySelectorAll(DIALOG)].at(-1);
  const focused = document.activeElement?.closest('form') ?? undefined;
  const forms = [...(dialog ?? document).querySelectorAll('form')];
  const form = focused ?? (forms.length === 1 ? forms[0] : undefined);
  // A button that may not be pressed is none of the type "submit".
  const button = form === undefined ? undefined : [...form.elements].find(isSubmit);
  if (form === undefined || button === undefined) return false;
  form.requestSubmit(button);
  return true;
}

function isSubmit(element: Element): element is HTMLButtonElement {
  return element instanceof HTMLButtonElement && element.type === 'submit' && !element.disabled;
}
