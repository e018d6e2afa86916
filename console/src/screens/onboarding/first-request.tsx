/** Waits for the first decided request of the tenant. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTenant } from '../../api/session.ts';
import { onboarding as text } from '../../text/en/onboarding.ts';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import { Step } from './step.tsx';

const ASK_AGAIN_MS = 3000;

export function FirstRequest() {
  const { id: tenant, client } = useTenant();
  const found = useQuery({
    queryKey: [tenant, 'decisions', 'first seen'],
    queryFn: async ({ signal }) => {
      const query = { limit: 1 } as const;
      return (await client.request('GET', '/v1/iam/decisions/recent', { query, signal })).data[0] ?? null;
    },
    refetchInterval: ({ state }) => (state.data ? false : ASK_AGAIN_MS),
  });
  const seen = found.data ?? undefined;
  return (
    <Step title={text.request} isDone={seen !== undefined}>
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {seen === undefined ? (
        <p role="status">{text.waiting}</p>
      ) : (
        <p role="status">
          {seen.outcome === 'allow' ? text.allowed : text.denied}{' '}
          <code>
            {seen.method} {seen.path}
          </code>{' '}
          <Ago time={seen.time} />{' '}
          <Link to="/explain" search={{ request_id: seen.request_id }}>
            {text.explain}
          </Link>
        </p>
      )}
    </Step>
  );
}
