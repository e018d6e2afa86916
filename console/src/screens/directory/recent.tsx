/** The results of the last tests of all administrators. */

import { useQuery } from '@tanstack/react-query';
import type { AuditRow } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useMe } from '../../api/session.ts';
import { directory as text } from '../../text/en/directory.ts';
import { Small, State } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import table from '../../ui/table.module.css';
import { Ago } from '../../ui/time.tsx';
import { Actor } from '../audit/actor.tsx';
import styles from './directory.module.css';

const SHOWN = 5;

/** Shows the tests of the caller's own tenant, where the server records them. */
export function Recent() {
  const me = useMe();
  const rows = useQuery({
    queryKey: [me.tenant_id, 'directory-tests'],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/audit', { query: { action: 'directory.test', limit: SHOWN }, signal }),
  });
  return (
    <section className={styles.part}>
      <SectionHead title={text.recent} small={text.recentSmall} />
      {rows.isError ? <Problem error={rows.error} onRetry={() => void rows.refetch()} /> : null}
      {rows.data?.data.length === 0 ? <Small>{text.noRecent}</Small> : null}
      {rows.data === undefined || rows.data.data.length === 0 ? null : (
        <table className={table.table}>
          <thead>
            <tr>
              <th>{text.time}</th>
              <th>{text.outcome}</th>
              <th className={table.phoneOff}>{text.who}</th>
              <th className={table.phoneOff}>{text.by}</th>
            </tr>
          </thead>
          <tbody>
            {rows.data.data.map((row) => (
              <tr key={row.id}>
                <td>
                  <Ago time={row.time} />
                </td>
                <td>
                  <Came row={row} />
                </td>
                <td className={table.phoneOff}>{member(row, 'username')}</td>
                <td className={table.phoneOff}>
                  <Actor actor={row.actor} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Came({ row }: { readonly row: AuditRow }) {
  const step = member(row, 'failed_step');
  return (
    <State tone={step === undefined ? 'good' : 'deny'}>{step === undefined ? text.passed : text.stoppedAt(step)}</State>
  );
}

function member({ after }: AuditRow, name: 'username' | 'failed_step'): string | undefined {
  if (typeof after !== 'object' || after === null) return undefined;
  const value: unknown = Reflect.get(after, name);
  return typeof value === 'string' ? value : undefined;
}
