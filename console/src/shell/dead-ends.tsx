/** The pages for an unknown address, and for a page that failed to load. */

import { type ErrorComponentProps, useRouter } from '@tanstack/react-router';
import { shell } from '../text/en/shell.ts';
import { LinkButton } from '../ui/button.tsx';
import { Page } from '../ui/page.tsx';
import { Problem } from '../ui/problem.tsx';

export function Missing() {
  const router = useRouter();
  return (
    <Page title={shell.notFound} says={shell.notFoundSays}>
      <LinkButton href={router.buildLocation({ to: '/' }).href}>{shell.toHome}</LinkButton>
    </Page>
  );
}

export function LoadError({ error, reset }: ErrorComponentProps) {
  const router = useRouter();
  return (
    <Page title={shell.broken}>
      <Problem
        error={error}
        onRetry={() => {
          reset();
          void router.invalidate();
        }}
      />
    </Page>
  );
}
