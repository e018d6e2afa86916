import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Usage() {
  return <Page title={shell.screens.usage}>{null}</Page>;
}
