import { shell } from '../../text/en/shell.ts';
import { Page } from '../../ui/page.tsx';

export function Overview() {
  return <Page title={shell.screens.overview}>{null}</Page>;
}
