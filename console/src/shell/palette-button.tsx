/** The palette's place in the bar, and the keys that open it. Its code is loaded when it is first opened. */

import { lazy, startTransition, useState } from 'react';
import { Button } from 'react-aria-components';
import { shell } from '../text/en/shell.ts';
import { Icon } from '../ui/icon.tsx';
import styles from './shell.module.css';
import { isMac, useShortcuts } from './shortcuts.ts';

const load = () => import('./palette/palette.tsx');
const Palette = lazy(() => load().then(({ Palette: component }) => ({ default: component })));

export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  // In a transition and without a boundary of its own: React shows what replaces a fallback 300 ms after the fallback at the earliest.
  const toggle = (): void => startTransition(() => setOpen((before) => !before));
  useShortcuts({ isPaletteOpen: isOpen, onPalette: toggle, onModifier: () => void load() });
  return (
    <>
      <Button
        className={styles.jump}
        aria-keyshortcuts={isMac ? 'Meta+K' : 'Control+K'}
        onHoverStart={() => void load()}
        onPress={toggle}
      >
        <Icon name="search" />
        <span>{shell.jump}</span>
        <span className={styles.keys} aria-hidden="true">
          <kbd>{isMac ? '⌘K' : 'Ctrl K'}</kbd>
        </span>
      </Button>
      {isOpen ? <Palette onClose={() => setOpen(false)} /> : null}
    </>
  );
}
