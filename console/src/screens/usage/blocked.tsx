/** Which limit rejected requests, and how often in the last week. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTenant } from '../../api/session.ts';
import { usage as text } from '../../text/en/usage.ts';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useNow } from '../../ui/time.tsx';
import styles from './usage.module.css';

const CODES = ['rate_limit_exceeded', 'insufficient_quota', 'max_tokens_exceeded', 'quota_exceeded'] as const;
const DAY_MS = 86_400_000;
const DAYS = 7;
/** Eight days with as many reasons as there are. */
const ROWS = 200;

export function Blocked() {
  const tenant = useTenant();
  const from = new Date(Math.floor(useNow() / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS).toISOString();
  const query = { from, interval: 'day', group_by: 'code', limit: ROWS } as const;
  const decisions = useQuery({
    queryKey: [tenant.id, 'decisions', 'blocked', from],
    queryFn: async ({ signal }) => (await tenant.client.request('GET', '/v1/iam/decisions', { query, signal })).data,
  });
  const rows = CODES.map((code) => ({
    code,
    n: (decisions.data ?? []).filter((row) => row.code === code).reduce((sum, row) => sum + row.count, 0),
  })).filter(({ n }) => n > 0);
  return (
    <section className={styles.blocked}>
      <SectionHead title={text.blocked} small={text.blockedSays} />
      {decisions.isError ? <Problem error={decisions.error} onRetry={() => void decisions.refetch()} /> : null}
      {decisions.isPending ? <div aria-busy="true" /> : null}
      {decisions.isSuccess && rows.length === 0 ? <p>{text.blockedNone}</p> : null}
      {rows.length === 0 ? null : (
        <ul>
          {rows.map(({ code, n }) => (
            <li key={code}>
              <Link to="/" search={{ code }}>
                {text.blockedBy[code]}
              </Link>
              <span>{text.times(n, count(n))}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
