/** One user: what the user may do and why, keys, sessions, activity, and what an administrator can do about them. */

import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { User as UserResource } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { useMoveToTenant } from '../../shell/move-to-tenant.ts';
import { users as text } from '../../text/en/users.ts';
import { Courses } from '../../ui/courses.tsx';
import { Note, shortened } from '../../ui/mark.tsx';
import { Page } from '../../ui/page.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Unloaded } from '../../ui/unloaded.tsx';
import { isSuspended, UserState, useLockedUntil } from '../users/state.tsx';
import { Access } from './access.tsx';
import { Actions } from './actions.tsx';
import { Activity } from './activity.tsx';
import { EditUser } from './edit-user.tsx';
import { Keys } from './keys.tsx';
import { Locked } from './locked.tsx';
import { useCounts, useUser } from './queries.ts';
import { USER_TABS, type UserSearch } from './search.ts';
import { Sessions } from './sessions.tsx';
import { Side } from './side.tsx';
import styles from './user.module.css';

export function User() {
  const tenant = useTenant();
  const { id } = useParams({ from: '/inside/users/$id' });
  const search = useSearch({ from: '/inside/users/$id' });
  const navigate = useNavigate({ from: '/users/$id' });
  const loaded = useUser(id);
  const isMoving = useMoveToTenant(loaded.data?.data.tenant_id);
  const counts = useCounts(id);
  const show = (change: Partial<UserSearch>): void => void navigate({ search: (before) => ({ ...before, ...change }) });
  const crumb = (
    <>
      <Link to="/users">{text.crumb}</Link> / {shortened(id)}
    </>
  );
  if (loaded.data === undefined || isMoving) return <Unloaded query={loaded} title={text.crumb} crumb={crumb} />;
  const user = loaded.data.data;
  const tab = search.tab ?? 'access';
  return (
    <Page
      title={user.name}
      says={
        <>
          {[user.email ?? text.noEmail, user.department].filter((part) => part !== null).join(' · ')} ·{' '}
          <UserState user={user} />
        </>
      }
      crumb={crumb}
      actions={<Actions user={user} onEdit={() => show({ open: 'edit' })} />}
    >
      <Notes user={user} />
      <Tabs
        label={text.parts}
        value={tab}
        onChange={(value) => show({ tab: value === 'access' ? undefined : value })}
        tabs={USER_TABS.map((value) => ({ value, label: <TabName tab={value} counts={counts} /> }))}
      >
        {tab === 'access' ? (
          <Courses main={<Access user={user} />} side={<Side user={user} onEdit={() => show({ open: 'edit' })} />} />
        ) : null}
        {tab === 'keys' ? <Keys user={user} /> : null}
        {tab === 'sessions' ? <Sessions user={user} /> : null}
        {tab === 'activity' ? (
          <Activity user={user} shown={search.activity ?? 'by'} onShow={(activity) => show({ activity })} />
        ) : null}
      </Tabs>
      {search.open === 'edit' ? (
        <EditUser key={`${tenant.id} ${id}`} loaded={loaded.data} onClose={() => show({ open: undefined })} />
      ) : null}
    </Page>
  );
}

interface TabNameProps {
  readonly tab: (typeof USER_TABS)[number];
  readonly counts: ReturnType<typeof useCounts>;
}

function TabName({ tab, counts }: TabNameProps) {
  const count = tab === 'keys' || tab === 'sessions' ? counts[tab] : undefined;
  return (
    <>
      {text.tabs[tab]}
      {count === undefined ? null : <span className={styles.count}> {count}</span>}
    </>
  );
}

function Notes({ user }: { readonly user: UserResource }) {
  const lockedUntil = useLockedUntil(user);
  return (
    <div className={styles.notes}>
      {lockedUntil === null ? null : <Locked user={user} until={lockedUntil} />}
      {isSuspended(user) ? (
        <Note tone="deny">
          <b>{text.directoryStates[user.directory_status ?? 'active']}.</b> {text.suspendedSays}
        </Note>
      ) : null}
      {user.email_conflict === undefined || user.email_conflict === null ? null : (
        <Note tone="care">{text.conflictSays(user.email_conflict)}</Note>
      )}
    </div>
  );
}
