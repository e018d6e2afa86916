/**
 * Work for administrators: locked accounts, users suspended by the directory, models without a price, policies that
 * apply to no principal, and patterns that match no permission.
 */

import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { NoticedResource, Overview as Report, User } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { covers, useMe, useTenant } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { Button } from '../../ui/button.tsx';
import { Entry } from '../../ui/courses.tsx';
import { Icon, type IconName } from '../../ui/icon.tsx';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useNow } from '../../ui/time.tsx';
import styles from './overview.module.css';
import { useOverview } from './queries.ts';

const SHOWN = 8;
/** Each lets the caller see a part of the list. */
const NEEDED = ['admin:users', 'admin:policies', 'admin:roles', 'admin:keys'] as const;
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

export function Care() {
  const { permissions } = useMe();
  const missing = NEEDED.filter((needed) => !permissions.some((pattern) => covers(pattern, needed)));
  const overview = useOverview();
  const { data } = overview;
  const now = useNow();
  const entries = data === undefined ? [] : entriesOf(data, now);
  return (
    <section>
      <SectionHead title={text.care} small={entries.length === 0 ? undefined : count(entries.length)} />
      {overview.isError ? <Problem error={overview.error} onRetry={() => void overview.refetch()} /> : null}
      {overview.isPending ? <div className={styles.wait} aria-busy="true" /> : null}
      {entries.length === 0 && overview.isSuccess && missing.length < NEEDED.length ? (
        <p className={styles.soft}>{text.careNone}</p>
      ) : null}
      <ul className={styles.list}>{entries.slice(0, SHOWN)}</ul>
      {entries.length > SHOWN || data?.notices.has_more === true ? (
        <p className={styles.soft}>{text.moreCare}</p>
      ) : null}
      {data?.notices.all_keys === false ? <p className={styles.soft}>{text.newestKeys}</p> : null}
      {missing.length === 0 ? null : <p className={styles.soft}>{text.careHidden(missing)}</p>}
    </section>
  );
}

function entriesOf({ users, notices, unpriced_models: unpriced = [] }: Report, now: number): readonly ReactNode[] {
  const [first] = unpriced;
  const locked = (users?.locked ?? []).filter(({ locked_until: until }) => Date.parse(until ?? '') > now);
  return [
    ...locked.map((user) => <Locked key={`locked ${user.id}`} user={user} />),
    ...(users?.suspended ?? []).map((user) => (
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
    ...(users?.email_conflicts ?? []).map((user) => (
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
    ...(first === undefined
      ? []
      : [
          <Entry
            key="unpriced"
            icon={<Mark name="price" />}
            name={
              <>
                <code>{first.model}</code> {text.unpriced(unpriced.length - 1)}
              </>
            }
            second={text.unpricedSays(count(unpriced.reduce((sum, { requests }) => sum + requests, 0)))}
            end={
              <Link to="/spend" search={{ by: 'model' }} className={styles.link} aria-label={text.openOf(text.toSpend)}>
                {text.open}
              </Link>
            }
          />,
        ]),
    ...notices.data.map((notice) => (
      <Noted key={`${notice.kind} ${notice.id} ${notice.notice.path}`} noticed={notice} />
    )),
  ];
}

function goneOf({ directory_status: status }: User): string {
  return status === undefined || status === 'active' ? '' : text.gone[status];
}

function Locked({ user }: { readonly user: User }) {
  const { id: tenant, client } = useTenant();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const unlock = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await client.users.unlock(user.id);
      await changed(tenant, 'users');
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

function Noted({ noticed }: { readonly noticed: NoticedResource }) {
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
            <b>{name}</b> {text.withoutRoles}
          </>
        }
        second={text.withoutRolesSays}
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
  readonly noticed: NoticedResource;
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
