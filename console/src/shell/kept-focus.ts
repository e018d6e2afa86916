import { useEffect } from 'react';

/**
 * Moves the focus when the element that has it goes away, for example with its row: to the closest part around it that
 * takes the focus, at last to the whole content. Otherwise a screen reader would begin again at the top of the page.
 */
export function useKeptFocus(): void {
  useEffect(() => {
    /** The element that had the focus in the content, and what is around it. */
    let last: readonly HTMLElement[] = [];
    let frame = 0;
    const note = ({ target }: FocusEvent): void => {
      if (target instanceof HTMLElement && target.closest('main') !== null) last = withParents(target);
    };
    const isLost = (): boolean => document.activeElement === document.body && last[0]?.isConnected === false;
    const keep = (): void => {
      if (!isLost()) return;
      const next = last.find((element) => element.isConnected && element.hasAttribute('tabindex'));
      last = [];
      next?.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(() => {
      if (!isLost()) return;
      cancelAnimationFrame(frame);
      // A dialog that closes returns the focus in the next frame itself, if its button is still there.
      frame = requestAnimationFrame(keep);
    });
    document.addEventListener('focusin', note);
    observer.observe(document.body, { childList: true, subtree: true });
    return () => {
      document.removeEventListener('focusin', note);
      observer.disconnect();
      cancelAnimationFrame(frame);
    };
  }, []);
}

function withParents(element: HTMLElement): readonly HTMLElement[] {
  const { parentElement } = element;
  return parentElement === null ? [element] : [element, ...withParents(parentElement)];
}
