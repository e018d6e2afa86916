/** Opens a screen, or says why the caller may not see it. All screens pass here, so none has to do it by itself. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ProblemError } from '../../../client/index.ts';
import { hasUnsaved } from '../api/drafts.ts';
import { AllowedProvider, meQuery, useTenant } from '../api/session.ts';
import { shell } from '../text/en/shell.ts';
import { Page } from '../ui/page.tsx';
import { Problem } from '../ui/problem.tsx';
import { Closed } from './closed.tsx';
import { type GuardedScreen, NEEDS, useGuardedScreen, useMayOpen } from './needs.ts';

export function Guard({ children }: { readonly children: ReactNode }) {
  const screen = useGuardedScreen();
  if (screen === undefined) return children;
  return (
    <Guarded key={screen} screen={screen}>
      {children}
    </Guarded>
  );
}

/**
 * If the caller's roles do not permit the request, the page sends it nevertheless: a policy may allow it, and a
 * rejection has a request id. A caller who loses the right keeps an open screen with unsaved work: each request on it
 * shows its refusal.
 */
function Guarded({ screen, children }: { readonly screen: GuardedScreen; readonly children: ReactNode }) {
  const tenant = useTenant();
  const queries = useQueryClient();
  const isPermitted = useMayOpen()(screen);
  const [isOpen, setOpen] = useState(false);
  const asked = useQuery({
    queryKey: [tenant.id, 'may open', screen],
    queryFn: async ({ signal }) => {
      try {
        await NEEDS[screen].ask(tenant.client, signal);
        return null;
      } catch (error) {
        if (error instanceof ProblemError && error.status === 403) return error;
        throw error;
      }
    },
    enabled: !isPermitted,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const askAgain = async (): Promise<void> => {
    await queries.invalidateQueries({ queryKey: meQuery.queryKey });
    await asked.refetch();
  };
  const isAllowed = !isPermitted && asked.data === null;
  const isShown = isPermitted || isAllowed || (isOpen && hasUnsaved());
  if (isOpen !== isShown) setOpen(isShown);
  if (isShown)
    return <AllowedProvider value={isAllowed ? NEEDS[screen].permission : undefined}>{children}</AllowedProvider>;
  if (asked.isError) {
    return (
      <Page title={shell.screens[screen]}>
        <Problem error={asked.error} onRetry={() => void askAgain()} />
      </Page>
    );
  }
  return (
    <Closed
      screen={screen}
      refusal={asked.data ?? undefined}
      refusedAtMs={asked.dataUpdatedAt}
      onAskAgain={() => void askAgain()}
    />
  );
}
