/** The first active keys of a user, beside what the user may do. */

import { Link } from '@tanstack/react-router';
import type { User } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { users as text } from '../../text/en/users.ts';
import { Entry } from '../../ui/courses.tsx';
import { Skeleton, Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Ago, Until } from '../../ui/time.tsx';
import styles from './side.module.css';

const SHOWN = 3;

/** Shows nothing if the caller must not list the keys. The tab gives the reason. */
export function SideKeys({ user }: { readonly user: User }) {
  const { id: tenant, client } = useTenant();
  const query = { user_id: user.id, status: 'active', limit: SHOWN } as const;
  const list = useList<'/v1/iam/api-keys'>([tenant, 'keys', query], (_cursor, signal) =>
    client.request('GET', '/v1/iam/api-keys', { query, signal }),
  );
  if (list.kind === 'failed') return null;
  return (
    <section>
      <SectionHead
        title={text.keys}
        link={
          <Link to="/keys" search={{ user: user.id }}>
            {text.openKeys}
          </Link>
        }
      />
      {list.kind === 'loading' ? <Skeleton width={3} /> : null}
      {list.kind === 'loaded' && list.rows.length === 0 ? <Small>{text.noActiveKeys}</Small> : null}
      {list.kind === 'loaded' ? (
        <ul>
          {list.rows.map((key) => (
            <Entry
              key={key.id}
              name={
                <Link to="/keys" search={{ open: key.id }} className={styles.role}>
                  {nameOf(key)}
                </Link>
              }
              second={
                <>
                  <code>{shownKey(key)}</code> ·{' '}
                  {key.last_used_at === null ? (
                    text.neverUsed
                  ) : (
                    <>
                      {text.used} <Ago time={key.last_used_at} />
                    </>
                  )}
                </>
              }
              end={<Until time={key.expires_at} />}
            />
          ))}
        </ul>
      ) : null}
    </section>
  );
}
