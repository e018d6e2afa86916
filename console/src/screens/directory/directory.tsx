import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Directory() {
  return <Page title={shell.screens.directory}>{null}</Page>;
}
