/** Keys that expire within two weeks, the first to expire first. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { Entry } from '../../ui/courses.tsx';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago, distance, useNow } from '../../ui/time.tsx';
import styles from './overview.module.css';
import { Section } from './section.tsx';

const SOON_MS = 14 * 86_400_000;
const HOUR_MS = 3_600_000;
/** The API lists keys in the order of ids, so the screen reads this number of keys and sorts them by expiry. */
const LOOKED_AT = 50;
const SHOWN = 4;

export function Expiring() {
  const { id, client } = useTenant();
  const now = useNow();
  const before = new Date(Math.ceil((now + SOON_MS) / HOUR_MS) * HOUR_MS).toISOString();
  const keys = useQuery({
    queryKey: [id, 'keys', 'expiring', before],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/api-keys', {
        query: { status: 'active', expires_before: before, limit: LOOKED_AT, count: true },
        signal,
      }),
  });
  const total = keys.data?.total;
  const rows = (keys.data?.data ?? []).toSorted((a, b) => ((a.expires_at ?? '') < (b.expires_at ?? '') ? -1 : 1));
  const link =
    rows.length === 0 ? undefined : (
      <Link to="/keys" search={{ status: 'expiring' }}>
        {total === undefined ? text.allOf('') : text.allOf(count(total))}
      </Link>
    );
  return (
    <Section head={<SectionHead title={text.expiring} link={link} />}>
      {keys.isError ? <Problem error={keys.error} onRetry={() => void keys.refetch()} /> : null}
      {keys.isPending ? <div className={styles.wait} aria-busy="true" /> : null}
      {keys.isSuccess && rows.length === 0 ? <p className={styles.soft}>{text.expiringNone}</p> : null}
      <ul className={styles.list}>
        {rows.slice(0, SHOWN).map((key) => (
          <Entry
            key={key.id}
            name={
              <Link to="/keys" search={{ open: key.id }}>
                <b>{nameOf(key)}</b>
              </Link>
            }
            second={
              <>
                <code>
                  {key.prefix}…{key.last_four}
                </code>
                {' · '}
                {key.last_used_at === null ? (
                  text.neverUsed
                ) : (
                  <>
                    {text.used} <Ago time={key.last_used_at} />
                  </>
                )}
              </>
            }
            end={
              <time className={styles.soon} dateTime={key.expires_at ?? ''} title={key.expires_at ?? ''}>
                {distance(Date.parse(key.expires_at ?? '') - now)}
              </time>
            }
          />
        ))}
      </ul>
    </Section>
  );
}
