import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Account() {
  return <Page title={shell.screens.account}>{null}</Page>;
}
