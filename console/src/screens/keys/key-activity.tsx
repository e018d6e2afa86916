/** The recorded requests of a key in the last 24 hours, the reasons of its denials, and the addresses of its clients. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ApiKey, RecentDecision } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import { reasonOf } from '../overview/reasons.tsx';
import styles from './key-activity.module.css';

const SHOWN = 5;
const ADDRESSES = 100;

export function KeyActivity({ apiKey }: { readonly apiKey: ApiKey }) {
  const tenant = useTenant();
  const denied = useDenied('audit:read');
  const recent = (outcome: 'allow' | 'deny') => ({ principal: apiKey.id, outcome, limit: ADDRESSES }) as const;
  const found = useQuery({
    queryKey: [tenant.id, 'decisions', 'key', apiKey.id],
    queryFn: async ({ signal }) => {
      const [allows, denials] = await Promise.all(
        (['allow', 'deny'] as const).map((outcome) =>
          tenant.client.request('GET', '/v1/iam/decisions/recent', { query: recent(outcome), signal }),
        ),
      );
      return { allows: allows?.data ?? [], denials: denials?.data ?? [] };
    },
    enabled: denied === undefined,
  });
  if (denied !== undefined) return null;
  if (found.isError) return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  if (found.data === undefined) {
    return (
      <section className={styles.activity} aria-busy="true">
        <SectionHead title={text.activity} />
      </section>
    );
  }
  const { allows, denials } = found.data;
  return (
    <section className={styles.activity}>
      <SectionHead title={text.activity} />
      <Requests label={text.denials} rows={denials} none={text.noDenials} />
      <Requests label={text.allows} rows={allows} none={text.noAllows} />
      <Addresses rows={[...denials, ...allows]} />
    </section>
  );
}

interface RequestsProps {
  readonly label: string;
  readonly rows: readonly RecentDecision[];
  readonly none: string;
}

function Requests({ label, rows, none }: RequestsProps) {
  return (
    <>
      <h3>{label}</h3>
      {rows.length === 0 ? <p className={styles.soft}>{none}</p> : null}
      <ul className={styles.rows} aria-label={label}>
        {rows.slice(0, SHOWN).map((row) => (
          <li key={row.request_id}>
            <Link to="/explain" search={{ request_id: row.request_id }}>
              {row.route ?? `${row.method ?? ''} ${row.path ?? ''}`}
            </Link>
            <span>{row.outcome === 'deny' ? reasonOf(row.code) : row.resources.join(', ')}</span>
            <span className={styles.soft}>
              <Ago time={row.time} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Addresses({ rows }: { readonly rows: readonly RecentDecision[] }) {
  const counts = new Map<string, number>();
  for (const { client_ip: address } of rows) if (address !== null) counts.set(address, (counts.get(address) ?? 0) + 1);
  const most = [...counts].sort(([, left], [, right]) => right - left).slice(0, SHOWN);
  return (
    <>
      <h3>{text.from}</h3>
      {most.length === 0 ? <p className={styles.soft}>{text.noAddress}</p> : null}
      <ul className={styles.rows} aria-label={text.from}>
        {most.map(([address, count]) => (
          <li key={address}>
            <code>{address}</code>
            <span className={styles.soft}>{text.requestsFrom(count)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
