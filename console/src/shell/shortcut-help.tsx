import { Fragment } from 'react';
import { common } from '../text/en/common.ts';
import { shell } from '../text/en/shell.ts';
import { Button } from '../ui/button.tsx';
import { Facts } from '../ui/facts.tsx';
import { Ask } from '../ui/overlay.tsx';
import { isMac } from './shortcuts.ts';

const CHORD = isMac ? '⌘' : 'Ctrl';

/** Each action with its keys. Keys of one text are pressed together, and texts one after the other. */
const SHORTCUTS: readonly (readonly [string, readonly string[]])[] = [
  [shell.keys.palette, [`${CHORD} K`]],
  [shell.keys.search, ['/']],
  [shell.keys.createKey, ['C', 'K']],
  [shell.keys.explain, ['E']],
  [shell.keys.send, [`${CHORD} Enter`]],
  [shell.keys.leave, ['Esc']],
  [shell.keys.help, ['?']],
];

/** The list of the keys that work on every screen. */
export function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Ask
      title={shell.keys.title}
      onClose={onClose}
      actions={
        <Button autoFocus onPress={onClose}>
          {common.close}
        </Button>
      }
    >
      <Facts
        isNamesFirst
        facts={SHORTCUTS.map(([name, keys]) => ({
          name,
          value: keys.map((key, i) => (
            <Fragment key={key}>
              {i === 0 ? null : ` ${shell.keys.thenKey} `}
              <kbd>{key}</kbd>
            </Fragment>
          )),
        }))}
      />
    </Ask>
  );
}
