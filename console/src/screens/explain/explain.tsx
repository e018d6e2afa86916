import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Explain() {
  return <Page title={shell.screens.explain}>{null}</Page>;
}
