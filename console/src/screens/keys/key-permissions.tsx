/** The permissions that the scopes of a key cover, and of which no use is recorded in the last 30 days. */

import { useQuery } from '@tanstack/react-query';
import type { ApiKey } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Tags } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import styles from './key-activity.module.css';

/** The most of one page. A server with more permissions of its own shows the first. */
const SHOWN = 200;

export function KeyPermissions({ apiKey: { id, scopes } }: { readonly apiKey: ApiKey }) {
  const { id: tenant, client } = useTenant();
  const found = useQuery({
    queryKey: [tenant, 'key', id, 'permissions', scopes],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/api-keys/{id}/permissions', { path: { id }, query: { limit: SHOWN }, signal }),
  });
  const covered = found.data?.data;
  return (
    <section className={styles.activity} aria-busy={found.isPending}>
      <SectionHead title={text.unusedPermissions} />
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {covered === undefined ? null : (
        <Unused
          names={covered.filter((row) => row.last_used_on === null).map((row) => row.permission)}
          of={covered.length}
        />
      )}
    </section>
  );
}

function Unused({ names, of }: { readonly names: readonly string[]; readonly of: number }) {
  if (names.length === 0) return <p className={styles.soft}>{of === 0 ? text.coversNone : text.unusedNone}</p>;
  return (
    <>
      <Tags values={names} atMost={SHOWN} />
      <p className={styles.soft}>{text.unusedSays}</p>
    </>
  );
}
