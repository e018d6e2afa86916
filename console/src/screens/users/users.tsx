import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Users() {
  return <Page title={shell.screens.users}>{null}</Page>;
}
