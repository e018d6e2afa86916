import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Roles() {
  return <Page title={shell.screens.roles}>{null}</Page>;
}
