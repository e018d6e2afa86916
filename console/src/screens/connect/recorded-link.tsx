/** Links to the explanation of a denial as soon as the server has recorded it. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { ProblemError } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { connect as text } from '../../text/en/connect.ts';
import { Small } from '../../ui/mark.tsx';

/** The server writes decisions in batches, once a second. */
const MAX_RETRIES = 8;
const RETRY_MS = 700;

export function RecordedLink({ requestId }: { readonly requestId: string }) {
  const { id, client } = useTenant();
  const denied = useDenied('audit:read');
  const recorded = useQuery({
    queryKey: [id, 'decisions', 'recorded-link', requestId],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/decisions/recent/{request_id}', { path: { request_id: requestId }, signal }),
    enabled: denied === undefined,
    retry: (failures, error) => error instanceof ProblemError && error.status === 404 && failures < MAX_RETRIES,
    retryDelay: RETRY_MS,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (denied !== undefined) return <Small>{denied}</Small>;
  if (recorded.isPending) return <Small>{text.recording}</Small>;
  if (recorded.isError) return <Small>{text.notRecorded}</Small>;
  return (
    <Link to="/explain" search={{ request_id: requestId }}>
      {text.toExplanation}
    </Link>
  );
}
