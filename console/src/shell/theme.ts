/** Light, dark, or as the system says. It is kept in this browser; nothing about it is secret. */

export type Theme = 'system' | 'light' | 'dark';

const NAME = 'postern.theme';

export function readTheme(): Theme {
  const kept = localStorage.getItem(NAME);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}

export function applyTheme(theme: Theme = readTheme()): void {
  const { dataset } = document.documentElement;
  if (theme === 'system') delete dataset['theme'];
  else dataset['theme'] = theme;
}

export function keepTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, theme);
  applyTheme(theme);
}
