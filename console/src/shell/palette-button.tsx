/** The palette's place in the bar, and the keys that open it. Its code is loaded when it is first opened. */

import { useState } from 'react';
import { Button } from 'react-aria-components';
import { shell } from '../text/en/shell.ts';
import { Icon } from '../ui/icon.tsx';
import styles from './shell.module.css';
import { ShortcutHelp } from './shortcut-help.tsx';
import { isMac, useShortcuts } from './shortcuts.ts';

const load = () => import('./palette/palette.tsx');
type PaletteComponent = Awaited<ReturnType<typeof load>>['Palette'];

export function PaletteButton() {
  const [isOpen, setOpen] = useState(false);
  // Not lazy(): it needs a transition, which waits for every other transition, such as a navigation, and can be lost
  // with it.
  const [Palette, setPalette] = useState<PaletteComponent>();
  const toggle = (): void => {
    setOpen((before) => !before);
    load().then(
      ({ Palette: component }) => setPalette(() => component),
      (error: unknown) =>
        // Thrown while rendering, so that the page's error boundary shows it.
        setPalette(() => {
          throw error;
        }),
    );
  };
  const [isHelpOpen, setHelpOpen] = useState(false);
  useShortcuts({
    isPaletteOpen: isOpen,
    onPalette: toggle,
    onHelp: () => setHelpOpen(true),
    onModifier: () => void load(),
  });
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
      {isOpen && Palette !== undefined ? <Palette onClose={() => setOpen(false)} /> : null}
      {isHelpOpen ? <ShortcutHelp onClose={() => setHelpOpen(false)} /> : null}
    </>
  );
}
