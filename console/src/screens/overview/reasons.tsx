/** Why requests were denied, and the latest of them with the way to their explanation. */

import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { RecentDecision } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { classes } from '../../ui/classes.ts';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import chart from './chart.module.css';
import { type Decided, SHOWN_REASONS } from './decided.ts';
import styles from './overview.module.css';
import { useOverview } from './queries.ts';
import { Section } from './section.tsx';

const LATEST = 5;
const TONES = ['d1', 'd2', 'd3', 'd4'] as const;

export function reasonOf(code: string): string {
  return text.reasons[code] ?? code;
}

export function Reasons({ decided }: { readonly decided: Decided }) {
  const { code } = useSearch({ from: '/inside/' });
  const navigate = useNavigate({ from: '/' });
  const { reasons, denied } = decided;
  if (denied === 0) return <p className={styles.soft}>{text.none}</p>;
  const most = Math.max(...reasons.map(({ count: n }) => n));
  return (
    <table className={styles.reasons}>
      <thead>
        <tr>
          <th scope="col">{text.why}</th>
          <th scope="col" className={styles.phoneOff}>
            <span className={styles.read}>{text.shareBar}</span>
          </th>
          <th scope="col">{text.count}</th>
          <th scope="col">{text.share}</th>
        </tr>
      </thead>
      <tbody>
        {reasons.map((reason, i) => {
          const tone = chart[TONES[Math.min(i, SHOWN_REASONS)] ?? 'd4'];
          return (
            <tr key={reason.code}>
              <th scope="row">
                <span className={styles.named}>
                  <svg width="9" height="9" aria-hidden="true" className={styles.swatch}>
                    <rect className={tone} width="9" height="9" />
                  </svg>
                  <button
                    type="button"
                    className={styles.reason}
                    aria-pressed={code === reason.code}
                    title={code === reason.code ? text.all : text.only(reasonOf(reason.code))}
                    onClick={() =>
                      void navigate({
                        search: (old) => ({ ...old, code: code === reason.code ? undefined : reason.code }),
                        resetScroll: false,
                      })
                    }
                  >
                    {reasonOf(reason.code)}
                  </button>
                </span>
              </th>
              <td className={styles.phoneOff}>
                <svg className={styles.share} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                  <rect className={tone} width={(100 * reason.count) / most} height="4" />
                </svg>
              </td>
              <td>{count(reason.count)}</td>
              <td className={styles.dim}>{Math.round((100 * reason.count) / denied)} %</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

export function Latest() {
  const { code } = useSearch({ from: '/inside/' });
  const title = code === undefined ? text.latest : text.latestOf(reasonOf(code));
  return (
    <Section needs="audit:read" head={<SectionHead title={title} />}>
      <LatestRows code={code} />
    </Section>
  );
}

function LatestRows({ code }: { readonly code: string | undefined }) {
  const { id, client } = useTenant();
  const overview = useOverview();
  const ofCode = useQuery({
    queryKey: [id, 'decisions', 'latest', code],
    queryFn: async ({ signal }) => {
      const query = { outcome: 'deny', code, include: 'names', limit: LATEST } as const;
      return (await client.request('GET', '/v1/iam/decisions/recent', { query, signal })).data;
    },
    enabled: code !== undefined,
  });
  const latest = code === undefined ? overview : ofCode;
  const rows = code === undefined ? overview.data?.denials : ofCode.data;
  if (latest.isError) return <Problem error={latest.error} onRetry={() => void latest.refetch()} />;
  if (rows === undefined) return <div className={styles.wait} aria-busy="true" />;
  if (rows.length === 0) return <p className={styles.soft}>{text.latestNone}</p>;
  return (
    <ul className={styles.rows}>
      {rows.map((decision) => (
        <li key={decision.request_id}>
          <span className={classes(styles.when, styles.dim)}>
            <Ago time={decision.time} />
          </span>
          <span className={styles.what}>
            {decision.principal === null ? text.unknownPrincipal : <Principal {...decision.principal} />}{' '}
            <code>
              {decision.method} {decision.path}
            </code>
            <small>{becauseOf(decision)}</small>
          </span>
          <Link
            to="/explain"
            search={{ request_id: decision.request_id }}
            aria-label={text.explainOf(decision.request_id)}
            className={styles.link}
          >
            {text.explain}
          </Link>
        </li>
      ))}
    </ul>
  );
}

function becauseOf({ code, policy, resources }: RecentDecision): string {
  const parts = [reasonOf(code), ...(policy === null ? [] : [text.byPolicy(policy)]), ...resources.slice(0, 2)];
  return parts.join(' · ');
}
