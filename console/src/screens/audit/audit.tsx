import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Audit() {
  return <Page title={shell.screens.audit}>{null}</Page>;
}
