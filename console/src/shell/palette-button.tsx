/** The palette's place in the bar, and the keys that open it. Its code is loaded when it is first opened. */

import { useEffect, useState } from 'react';
import { Button as AriaButton } from 'react-aria-components';
import { common } from '../text/en/common.ts';
import { shell } from '../text/en/shell.ts';
import { Button } from '../ui/button.tsx';
import { Icon } from '../ui/icon.tsx';
import { Ask } from '../ui/overlay.tsx';
import { Problem } from '../ui/problem.tsx';
import styles from './shell.module.css';
import { ShortcutHelp } from './shortcut-help.tsx';
import { isMac, useShortcuts } from './shortcuts.ts';

const load = () => import('./palette/palette.tsx');
/** A failure is shown when the palette opens. */
const preload = () => void load().catch(() => undefined);
type PaletteComponent = Awaited<ReturnType<typeof load>>['Palette'];

export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  // Not lazy(): it needs a transition, which waits for every other transition, such as a navigation, and can be lost
  // with it.
  const [Palette, setPalette] = useState<PaletteComponent>();
  const [error, setError] = useState<unknown>();
  const [typed, setTyped] = useState('');
  const toggle = (): void => {
    setOpen((before) => !before);
    setTyped('');
    setError(undefined);
    load().then(({ Palette: component }) => setPalette(() => component), setError);
  };
  useEarlyKeys(isOpen, setTyped);
  const [isHelpOpen, setHelpOpen] = useState(false);
  useShortcuts({
    isPaletteOpen: isOpen,
    onPalette: toggle,
    onHelp: () => setHelpOpen(true),
    onModifier: preload,
  });
  return (
    <>
      <AriaButton
        className={styles.jump}
        aria-keyshortcuts={isMac ? 'Meta+K' : 'Control+K'}
        onHoverStart={preload}
        onPress={toggle}
      >
        <Icon name="search" />
        <span>{shell.jump}</span>
        <span className={styles.keys} aria-hidden="true">
          <kbd>{isMac ? '⌘K' : 'Ctrl K'}</kbd>
        </span>
      </AriaButton>
      {isOpen && Palette !== undefined ? (
        <Palette typed={typed} onType={setTyped} onClose={() => setOpen(false)} />
      ) : null}
      {isOpen && error !== undefined ? (
        <Ask
          title={shell.jump}
          onClose={() => setOpen(false)}
          actions={<Button onPress={() => setOpen(false)}>{common.close}</Button>}
        >
          <Problem error={error} />
        </Ask>
      ) : null}
      {isHelpOpen ? <ShortcutHelp onClose={() => setHelpOpen(false)} /> : null}
    </>
  );
}

/** Takes the letters that the user types between the opening of the palette and the focus in its field. */
function useEarlyKeys(isOpen: boolean, onType: (change: (before: string) => string) => void): void {
  useEffect(() => {
    if (!isOpen) return undefined;
    const listen = (event: KeyboardEvent): void => {
      const { target, key, ctrlKey, metaKey, altKey } = event;
      const isInDialog = target instanceof Element && target.closest('[role=dialog], [role=alertdialog]') !== null;
      if (isInDialog || ctrlKey || metaKey || altKey || !(key.length === 1 || key === 'Backspace')) return;
      event.preventDefault();
      event.stopPropagation();
      onType((before) => (key === 'Backspace' ? before.slice(0, -1) : before + key));
    };
    document.addEventListener('keydown', listen, { capture: true });
    return () => document.removeEventListener('keydown', listen, { capture: true });
  }, [isOpen, onType]);
}
