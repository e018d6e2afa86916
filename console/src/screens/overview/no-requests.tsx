/** The overview of a tenant without requests: the next step depends on whether it has an active key. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { Empty } from '../../ui/mark.tsx';
import styles from './overview.module.css';
import type { Span } from './search.ts';

export function NoRequests({ span }: { readonly span: Span }) {
  const { id, client } = useTenant();
  const { platform_admin: isPlatformAdmin } = useMe();
  const isOwnOnly = useDenied('admin:keys') !== undefined;
  const keys = useQuery({
    queryKey: [id, 'keys', 'any active'],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/api-keys', { query: { status: 'active', limit: 1 }, signal }),
  });
  // While that is not known, the screen does not name a step that may be wrong.
  if (keys.isPending) return <div className={styles.waitChart} aria-busy="true" />;
  const hasKey = keys.data === undefined || keys.data.data.length > 0;
  return (
    <div className={styles.none}>
      <Empty
        title={`${text.nothing} ${text.lately[span]}`}
        action={
          <div className={styles.steps}>
            {hasKey ? (
              <Link to="/connect">{text.toConnect}</Link>
            ) : (
              <Link to="/keys" search={{ open: 'new' }}>
                {text.toNewKey}
              </Link>
            )}
            {isPlatformAdmin ? <Link to="/tenants">{text.toTenants}</Link> : null}
          </div>
        }
      >
        {hasKey ? text.hasKeys : isOwnOnly ? text.noOwnKey : text.noKey}
      </Empty>
    </div>
  );
}
