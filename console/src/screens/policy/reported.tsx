/** The recorded requests that a report-only policy would have changed. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Policy } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Entry } from '../../ui/courses.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';

const SHOWN = 5;

export function Reported({ policy: { name, effect } }: { readonly policy: Policy }) {
  const { id, client } = useTenant();
  const denied = useDenied('audit:read');
  const found = useQuery({
    queryKey: [id, 'decisions', 'reported', name, effect],
    queryFn: ({ signal }) => {
      const query = { report: name, would: effect, count: true, limit: SHOWN } as const;
      return client.request('GET', '/v1/iam/decisions/recent', { query, signal });
    },
    enabled: denied === undefined,
  });
  if (denied !== undefined) return null;
  if (found.isError) return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  return (
    <section aria-busy={found.data === undefined}>
      <SectionHead title={text.reports.title} />
      {found.data === undefined ? null : (
        <>
          <p>{found.data.data.length === 0 ? text.reports.none : text.reports[effect](totalOf(found.data))}</p>
          <ul>
            {found.data.data.map((row) => (
              <Entry
                key={row.request_id}
                name={
                  <Link to="/explain" search={{ request_id: row.request_id }}>
                    {row.route ?? `${row.method ?? ''} ${row.path ?? ''}`}
                  </Link>
                }
                second={row.resources.join(', ')}
                end={<Ago time={row.time} />}
              />
            ))}
          </ul>
          {found.data.sampled ? <Small>{text.reports.sampled}</Small> : null}
        </>
      )}
    </section>
  );
}

interface Counted {
  readonly total?: number;
  readonly total_exceeds?: number;
}

function totalOf({ total, total_exceeds: exceeded }: Counted): string {
  if (exceeded !== undefined) return text.reports.moreThan(exceeded.toLocaleString('en'));
  return (total ?? 0).toLocaleString('en');
}
