import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Tenants() {
  return <Page title={shell.screens.tenants}>{null}</Page>;
}
