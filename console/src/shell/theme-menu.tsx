import { useState } from 'react';
import { shell } from '../text/en/shell.ts';
import buttonStyles from '../ui/button.module.css';
import { classes } from '../ui/classes.ts';
import { Icon } from '../ui/icon.tsx';
import { Menu } from '../ui/overlay.tsx';
import { keepTheme, readTheme, type Theme } from './theme.ts';
import styles from './theme-menu.module.css';

const THEMES: readonly Theme[] = ['system', 'light', 'dark'];

export function ThemeMenu() {
  const [theme, setTheme] = useState(readTheme);
  return (
    <Menu
      label={`${shell.theme}: ${shell.themes[theme]}`}
      className={classes(buttonStyles.button, buttonStyles.quiet, buttonStyles.square, styles.theme)}
      choices={THEMES.map((choice) => ({
        id: choice,
        label: shell.themes[choice],
        onChoose: () => {
          keepTheme(choice);
          setTheme(choice);
        },
      }))}
    >
      <Icon name={theme === 'light' ? 'sun' : 'moon'} />
    </Menu>
  );
}
