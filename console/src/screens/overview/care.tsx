/**
 * Work for administrators: locked accounts, users suspended by the directory, policies that apply to no principal, and
 * patterns that match no permission.
 */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { Button } from '../../ui/button.tsx';
import { Entry } from '../../ui/courses.tsx';
import { Icon, type IconName } from '../../ui/icon.tsx';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { type Cares, type Noticed, readNotices, readUsers } from './cares.ts';
import styles from './overview.module.css';

const SHOWN = 8;
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

export function Care() {
  const tenant = useTenant();
  const noUsers = useDenied('admin:users');
  const noPolicies = useDenied('admin:policies');
  const noRoles = useDenied('admin:roles');
  const noKeys = useDenied('admin:keys');
  const users = useQuery({
    queryKey: [tenant.id, 'users', 'care'],
    queryFn: ({ signal }) => readUsers(tenant, signal),
    enabled: noUsers === undefined,
  });
  const may = { policies: noPolicies === undefined, roles: noRoles === undefined, keys: noKeys === undefined };
  const notices = useQuery({
    queryKey: [tenant.id, 'policies', 'care', may],
    queryFn: ({ signal }) => readNotices(tenant, may, signal),
    enabled: Object.values(may).some(Boolean),
  });
  const asked = [users, notices].filter(({ fetchStatus, status }) => fetchStatus !== 'idle' || status !== 'pending');
  const entries = entriesOf(users.data, notices.data?.found ?? []);
  const denied = [noUsers, noPolicies, noRoles, noKeys].filter((reason) => reason !== undefined);
  return (
    <section>
      <SectionHead title={text.care} small={entries.length === 0 ? undefined : count(entries.length)} />
      {[users, notices].map((query, i) =>
        query.isError ? (
          <Problem key={i === 0 ? 'users' : 'notices'} error={query.error} onRetry={() => void query.refetch()} />
        ) : null,
      )}
      {asked.some(({ isPending }) => isPending) ? <div className={styles.wait} aria-busy="true" /> : null}
      {entries.length === 0 && asked.length > 0 && asked.every(({ isSuccess }) => isSuccess) ? (
        <p className={styles.soft}>{text.careNone}</p>
      ) : null}
      <ul className={styles.list}>{entries.slice(0, SHOWN)}</ul>
      {entries.length > SHOWN ? <p className={styles.soft}>{text.more(count(entries.length - SHOWN))}</p> : null}
      {notices.data?.isPartial === true ? (
        <p className={styles.soft}>{text.looked(count(notices.data.lookedAt))}</p>
      ) : null}
      {denied.map((reason) => (
        <p key={reason} className={styles.soft}>
          {reason}
        </p>
      ))}
    </section>
  );
}

function entriesOf(users: Cares | undefined, notices: readonly Noticed[]): readonly ReactNode[] {
  return [
    ...(users?.locked ?? []).map((user) => <Locked key={`locked ${user.id}`} user={user} />),
    ...(users?.gone ?? []).map((user) => (
      <Entry
        key={`gone ${user.id}`}
        icon={<Mark name="directory" />}
        name={
          <>
            <UserLink user={user} /> {goneOf(user)}
          </>
        }
        second={text.goneSays}
      />
    )),
    ...(users?.conflicts ?? []).map((user) => (
      <Entry
        key={`conflict ${user.id}`}
        icon={<Mark name="directory" />}
        name={
          <>
            <UserLink user={user} /> {text.conflict}
          </>
        }
        second={user.email_conflict ?? text.conflictSays}
      />
    )),
    ...notices.map((notice) => <Noted key={`${notice.kind} ${notice.id} ${notice.notice.path}`} noticed={notice} />),
  ];
}

function goneOf({ directory_status: status }: User): string {
  return status === undefined || status === 'active' ? '' : text.gone[status];
}

function Locked({ user }: { readonly user: User }) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const unlock = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await client.users.unlock(user.id);
      await Promise.all(
        [
          [tenant, 'users'],
          [tenant, 'user', user.id],
          [tenant, 'audit'],
        ].map((queryKey) => queries.invalidateQueries({ queryKey })),
      );
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Entry
      icon={<Mark name="lock" />}
      name={
        <>
          <UserLink user={user} /> {text.lockedUntil} {clock.format(new Date(user.locked_until ?? 0))}
        </>
      }
      second={error === undefined ? text.lockedSays : <Problem error={error} />}
      end={
        <Button small label={text.unlockOf(user.name)} isPending={isBusy} onPress={() => void unlock()}>
          {text.unlock}
        </Button>
      }
    />
  );
}

function Noted({ noticed }: { readonly noticed: Noticed }) {
  const { kind, notice, name } = noticed;
  const end = (
    <WayTo noticed={noticed} className={styles.link} label={text.openOf(name)}>
      {text.open}
    </WayTo>
  );
  if (notice.kind === 'binds_no_one') {
    return (
      <Entry
        icon={<Mark name="care" />}
        name={
          <>
            <b>{name}</b> {text.bindsNobody}
          </>
        }
        second={text.bindsNobodySays}
        end={end}
      />
    );
  }
  if (notice.pattern === null) {
    return (
      <Entry
        icon={<Mark name="care" />}
        name={
          <>
            <b>{name}</b> {text.doesNothing}
          </>
        }
        second={notice.message}
        end={end}
      />
    );
  }
  return (
    <Entry
      icon={<Mark name="care" />}
      name={
        <>
          <code>{notice.pattern}</code> {text.in} {text.kinds[kind]} <b>{name}</b>
        </>
      }
      second={text.unneeded(notice.nearest)}
      end={end}
    />
  );
}

function WayTo({
  noticed: { kind, id },
  className,
  label,
  children,
}: {
  readonly noticed: Noticed;
  readonly className: string | undefined;
  readonly label: string;
  readonly children: ReactNode;
}) {
  switch (kind) {
    case 'role':
      return (
        <Link to="/roles/$name" params={{ name: id }} className={className} aria-label={label}>
          {children}
        </Link>
      );
    case 'policy':
      return (
        <Link to="/policies/$name" params={{ name: id }} className={className} aria-label={label}>
          {children}
        </Link>
      );
    case 'key':
      return (
        <Link to="/keys" search={{ open: id }} className={className} aria-label={label}>
          {children}
        </Link>
      );
    default:
      return kind satisfies never;
  }
}

function UserLink({ user }: { readonly user: User }) {
  return (
    <Link to="/users/$id" params={{ id: user.id }}>
      <b>{user.name}</b>
    </Link>
  );
}

function Mark({ name }: { readonly name: IconName }) {
  return (
    <span className={styles.careMark}>
      <Icon name={name} />
    </span>
  );
}
