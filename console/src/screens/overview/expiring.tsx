/** Keys that expire within two weeks, the first to expire first. */

import { Link } from '@tanstack/react-router';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { useDenied } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { Entry } from '../../ui/courses.tsx';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago, distance, useNow } from '../../ui/time.tsx';
import styles from './overview.module.css';
import { useOverview } from './queries.ts';
import { Section } from './section.tsx';

export function Expiring() {
  const now = useNow();
  const keys = useOverview();
  const denied = useDenied('admin:keys');
  const total = keys.data?.expiring_keys.total ?? 0;
  const rows = (keys.data?.expiring_keys.data ?? []).filter(({ expires_at: end }) => Date.parse(end ?? '') > now);
  const link =
    rows.length === 0 ? undefined : (
      <Link to="/keys" search={{ status: 'expiring' }}>
        {text.allOf(count(total))}
      </Link>
    );
  return (
    <Section head={<SectionHead title={text.expiring} link={link} />}>
      {keys.isError ? <Problem error={keys.error} onRetry={() => void keys.refetch()} /> : null}
      {keys.isPending ? <div className={styles.wait} aria-busy="true" /> : null}
      {keys.isSuccess && rows.length === 0 ? (
        <p className={styles.soft}>{denied === undefined ? text.expiringNone : text.ownExpiringNone}</p>
      ) : null}
      <ul className={styles.list}>
        {rows.map((key) => (
          <Entry
            key={key.id}
            name={
              <Link to="/keys" search={{ open: key.id }}>
                <b>{nameOf(key)}</b>
              </Link>
            }
            second={
              <>
                <code>{shownKey(key)}</code>
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
