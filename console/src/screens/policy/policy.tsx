import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Policy() {
  return <Page title={shell.screens.policies}>{null}</Page>;
}
