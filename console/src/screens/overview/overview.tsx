/** The first screen: what the tenant's requests come to, and what needs care. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import { useDenied } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { Courses } from '../../ui/courses.tsx';
import { Segments } from '../../ui/field.tsx';
import { count } from '../../ui/number.ts';
import { Page, SectionHead, Sentence } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Care } from './care.tsx';
import { Changes } from './changes.tsx';
import { Chart, magnified } from './chart.tsx';
import type { Decided } from './decided.ts';
import { useDecided } from './decisions.ts';
import { Expiring } from './expiring.tsx';
import { NoRequests } from './no-requests.tsx';
import styles from './overview.module.css';
import { Latest, Reasons, reasonOf } from './reasons.tsx';
import { SPANS, type Span } from './search.ts';
import { Tokens } from './tokens.tsx';

export function Overview() {
  const { span = '24h' } = useSearch({ from: '/inside/' });
  const navigate = useNavigate({ from: '/' });
  const denied = useDenied('usage:read');
  const decided = useDecided(span, denied === undefined);
  return (
    <Page
      title={text.title}
      actions={
        <Segments
          label={text.span}
          value={span}
          onChange={(value) =>
            void navigate({ search: (old) => ({ ...old, span: value === '24h' ? undefined : value }) })
          }
          options={SPANS.map((value) => ({ value, label: text.spans[value] }))}
        />
      }
    >
      {decided.data !== undefined && isEmpty(decided.data) ? null : (
        <div className={styles.sentence}>
          {decided.data === undefined ? (
            <Sentence>{denied ?? ' '}</Sentence>
          ) : (
            <Summary decided={decided.data} span={span} />
          )}
        </div>
      )}
      <div className={styles.below}>
        <Courses
          main={
            <>
              {decided.isError ? <Problem error={decided.error} onRetry={() => void decided.refetch()} /> : null}
              {denied !== undefined ? null : decided.data === undefined ? (
                <div className={styles.waitChart} aria-busy={!decided.isError} />
              ) : (
                <Requests decided={decided.data} span={span} />
              )}
              <Latest />
              <Changes />
            </>
          }
          side={
            <>
              <Tokens />
              <Care />
              <Expiring />
            </>
          }
        />
      </div>
    </Page>
  );
}

function Requests({ decided, span }: { readonly decided: Decided; readonly span: Span }) {
  if (isEmpty(decided)) return <NoRequests span={span} />;
  const caption = text.caption(magnified(decided));
  return (
    <section>
      <SectionHead title={text.chart[span]} small={span === '7d' ? `${caption} · ${text.utcDays}` : caption} />
      <Chart decided={decided} span={span} />
      <Reasons decided={decided} />
    </section>
  );
}

/** Then the empty state says so, and no sentence above it. */
function isEmpty({ allowed, denied }: Decided): boolean {
  return allowed + denied === 0;
}

const percent = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

function Summary({ decided, span }: { readonly decided: Decided; readonly span: Span }) {
  const { allowed, denied, reasons } = decided;
  const all = allowed + denied;
  const [first] = reasons;
  // Rounded down: one denied of many is not "100 % passed".
  const share = percent.format(Math.floor((1000 * allowed) / all) / 10);
  return (
    <Sentence>
      <b>{count(all)}</b> {text.requests(all)} {text.lately[span]}.{' '}
      {denied === 0 ? (
        text.passedAll
      ) : (
        <>
          <b className={styles.yes}>{share} %</b> {text.passed}; <b className={styles.no}>{count(denied)}</b>{' '}
          {text.wereDenied(denied)}
          {first === undefined ? null : (
            <>
              , {text.mostly} <b>{reasonOf(first.code)}</b>
            </>
          )}
          .
        </>
      )}
    </Sentence>
  );
}
