/** Who a policy binds: everyone, or the holders of its roles with their number. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Entry } from '../../ui/courses.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import type { PolicyFields } from './draft.ts';
import styles from './policy.module.css';

const SHOWN_ROLES = 8;

type AffectedProps = Pick<PolicyFields, 'applies_to' | 'attached_roles' | 'enabled'> & { readonly isGlobal: boolean };

export function Affected({ applies_to: appliesTo, attached_roles: roles, enabled, isGlobal }: AffectedProps) {
  const isEveryone = appliesTo === 'everyone';
  const more = roles.length - SHOWN_ROLES;
  return (
    <section>
      <SectionHead
        title={text.affected}
        link={isEveryone && !isGlobal ? <Link to="/users">{text.listUsers}</Link> : undefined}
      />
      <div className={styles.stack}>
        {enabled ? null : <p className={styles.says}>{text.affectsOff}</p>}
        {isEveryone ? (
          <p className={styles.says}>{isGlobal ? text.affectsGlobal : <Everyone />}</p>
        ) : roles.length === 0 ? (
          <p className={styles.says}>{text.affectsNobody}</p>
        ) : (
          <div>
            <ul>
              {roles.slice(0, SHOWN_ROLES).map((role) => (
                <Entry
                  key={role}
                  name={
                    <Link to="/roles/$name" params={{ name: role }} className={styles.name}>
                      {role}
                    </Link>
                  }
                  end={
                    <Link to="/users" search={{ role }}>
                      <Holders role={role} />
                    </Link>
                  }
                />
              ))}
            </ul>
            {more > 0 ? <Small>{text.more(more)}</Small> : null}
            <Small>{text.affectsRoles}</Small>
          </div>
        )}
        {isGlobal ? null : <Small>{text.platformAdmins}</Small>}
      </div>
    </section>
  );
}

function Everyone() {
  return <>{text.affectsAll(useUsers(undefined) ?? text.users('', false).trim())}</>;
}

function Holders({ role }: { readonly role: string }) {
  return <>{useUsers(role) ?? text.listUsers}</>;
}

/** How many active users there are, of a role or in all; undefined: not known, or not for this caller to know. */
function useUsers(role: string | undefined): string | undefined {
  const { id: tenant, client } = useTenant();
  const query = { limit: 1, count: true, status: 'active', ...(role === undefined ? {} : { role }) } as const;
  const { data } = useQuery({
    queryKey: [tenant, 'users', query],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/users', { query, signal }),
    retry: false,
  });
  const total = data?.total ?? data?.total_exceeds;
  if (total === undefined) return undefined;
  return text.users(common.total(total, data?.total === undefined), total === 1);
}
