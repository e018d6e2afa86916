import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Policies() {
  return <Page title={shell.screens.policies}>{null}</Page>;
}
