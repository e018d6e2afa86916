/** The tokens of the month, the quota, and the time of its reset. */

import { Link } from '@tanstack/react-router';
import { overview as text } from '../../text/en/overview.ts';
import { Bar } from '../../ui/bar.tsx';
import { compact } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { distance, useNow } from '../../ui/time.tsx';
import styles from './overview.module.css';
import { useOverview } from './queries.ts';
import { Section } from './section.tsx';

const month = new Intl.DateTimeFormat('en', { month: 'long' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const moment = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

export function Tokens() {
  const now = useNow();
  return (
    <Section
      needs="usage:read"
      head={<SectionHead title={text.tokens(month.format(now))} link={<Link to="/usage">{text.toUsage}</Link>} />}
    >
      <Used />
    </Section>
  );
}

function Used() {
  const now = useNow();
  const overview = useOverview();
  const tokens = overview.data?.monthly_tokens;
  if (overview.isError) return <Problem error={overview.error} onRetry={() => void overview.refetch()} />;
  if (tokens === undefined) return <div className={styles.wait} aria-busy="true" />;
  const { limit, used, remaining, reserved, resets_at: resetsAt, runs_out_at: runsOutAt } = tokens;
  return (
    <>
      <p className={styles.big}>
        {compact(used ?? 0)} <small>{limit === null ? text.noQuota : text.of(compact(limit))}</small>
      </p>
      {limit === null ? null : <Bar used={used ?? 0} limit={limit} reserved={reserved} />}
      <p className={styles.soft}>
        {remaining === null ? null : remaining <= 0 ? (
          <b className={styles.deny}>{text.usedUp} </b>
        ) : (
          `${text.left(compact(remaining))}${reserved > 0 ? `, ${text.reserved(compact(reserved))}` : ''}. `
        )}
        {runsOutAt === null ? null : (
          <>
            {text.pace} <b>{day.format(new Date(runsOutAt))}</b>.{' '}
          </>
        )}
        {resetsAt === null || limit === null ? null : (
          <>
            {text.resets}{' '}
            <time dateTime={resetsAt} title={`${resetsAt.replace('T', ' ').slice(0, 16)} UTC`}>
              <b className={styles.nowrap}>{moment.format(new Date(resetsAt))}</b>
            </time>
            , {distance(Date.parse(resetsAt) - now)}.
          </>
        )}
      </p>
    </>
  );
}
