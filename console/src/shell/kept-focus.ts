import { useEffect } from 'react';

const CONTROLS =
  'a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex]';

/**
 * Gives the focus to the nearest control of the content if the control that has it goes away: a row that opens a page or
 * is deleted, a button that removes the last filter. The browser gives it to the body, and Tab then begins at the top.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    /** The controls of the content when the focus last moved, and the place of the focus among them; -1: elsewhere. */
    let controls: readonly HTMLElement[] = [];
    let place = -1;
    /** A dialog was open since. */
    let isCovered = false;
    const content = (): HTMLElement | null => document.getElementById('content');
    const note = ({ target }: FocusEvent): void => {
      // Dialogs and menus are outside of the root.
      if (!(target instanceof HTMLElement) || target.closest('#root') === null) return;
      isCovered = false;
      controls = [...(content()?.querySelectorAll<HTMLElement>(CONTROLS) ?? [])];
      place = controls.indexOf(target);
    };
    const isLost = (): boolean => {
      const hasDialog = document.querySelector('[role=dialog], [role=alertdialog]') !== null;
      isCovered ||= hasDialog;
      const isGone = isCovered || controls[place]?.isConnected === false;
      return isGone && !hasDialog && document.activeElement === document.body;
    };
    const keep = (): void => {
      if (!isLost()) return;
      const nearest = place < 0 ? [] : [...controls.slice(place), ...controls.slice(0, place).toReversed()];
      const next = nearest.find((control) => control.isConnected && control.checkVisibility()) ?? content();
      next?.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(() => {
      // A dialog that closes gives the focus back in the next frame, unless the page behind it is still inert.
      if (isLost()) requestAnimationFrame(() => requestAnimationFrame(keep));
    });
    document.addEventListener('focusin', note);
    observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ['inert'] });
    return () => {
      document.removeEventListener('focusin', note);
      observer.disconnect();
    };
  }, []);
}
