import type { ReactNode } from 'react';
import { common } from '../text/en/common.ts';
import { Page } from './page.tsx';
import { Problem } from './problem.tsx';

interface UnloadedProps {
  readonly query: { readonly isError: boolean; readonly error: unknown; readonly refetch: () => unknown };
  /** The name of the kind of resource. */
  readonly title: string;
  readonly crumb: ReactNode;
}

/** The page of a resource that is loading, or that cannot be loaded. */
export function Unloaded({ query, title, crumb }: UnloadedProps) {
  return (
    <Page title={query.isError ? title : common.loading} crumb={crumb}>
      {query.isError ? <Problem error={query.error} onRetry={() => void query.refetch()} /> : null}
    </Page>
  );
}
