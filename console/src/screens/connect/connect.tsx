import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Connect() {
  return <Page title={shell.screens.connect}>{null}</Page>;
}
