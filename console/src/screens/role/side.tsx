/** Beside the editor: the holders of the role, and its policies. */

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Role } from '../../../../client/index.ts';
import { type List, useList } from '../../api/list.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { roles as text } from '../../text/en/roles.ts';
import { users as userText } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Entry } from '../../ui/courses.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Skeleton, Small, Tag } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { UserState } from '../users/state.tsx';
import { useHolders } from './queries.ts';
import styles from './role.module.css';

const PAGE = 10;

export function Side({ role }: { readonly role: Role }) {
  const { name, created_at: created, updated_at: updated } = role;
  return (
    <>
      <Affected name={name} />
      <Attached name={name} />
      {created === null || updated === null ? null : (
        <section>
          <SectionHead title={text.facts} />
          <Facts
            facts={[
              { name: text.created, value: <Moment time={created} /> },
              { name: text.changed, value: <Moment time={updated} /> },
            ]}
          />
        </section>
      )}
    </>
  );
}

function Affected({ name }: { readonly name: string }) {
  const { id: tenant, client } = useTenant();
  const list = useList<'/v1/iam/users'>([tenant, 'users', { role: name }, PAGE], (cursor, signal) =>
    client.request('GET', '/v1/iam/users', { query: { role: name, limit: PAGE, cursor }, signal }),
  );
  const count = useHolders(name);
  return (
    <section>
      <SectionHead
        title={text.affected}
        small={count === undefined ? undefined : text.users(count)}
        link={
          <Link to="/users" search={{ role: name }}>
            {text.allUsers}
          </Link>
        }
      />
      <Entries list={list} none={text.noUsers}>
        {(user) => (
          <Entry
            key={user.id}
            name={
              <Link to="/users/$id" params={{ id: user.id }} className={styles.policy}>
                {user.name}
              </Link>
            }
            second={user.email ?? userText.noEmail}
            end={
              user.status === 'active' && !user.roles.includes(name) ? (
                <Tag isWord>{user.directory_roles.includes(name) ? userText.byDirectory : userText.byIssuer}</Tag>
              ) : (
                <UserState user={user} />
              )
            }
          />
        )}
      </Entries>
    </section>
  );
}

function Attached({ name }: { readonly name: string }) {
  const { id: tenant, client } = useTenant();
  const list = useList<'/v1/iam/roles/{name}/policies'>([tenant, 'policies', { attached: name }], (cursor, signal) =>
    client.request('GET', '/v1/iam/roles/{name}/policies', { path: { name }, query: { limit: PAGE, cursor }, signal }),
  );
  return (
    <section>
      <SectionHead title={text.policies} />
      <Entries list={list} none={text.noPolicies}>
        {(policy) => (
          <Entry
            key={policy.name}
            name={
              <Link to="/policies/$name" params={{ name: policy.name }} className={styles.policy}>
                {policy.name}
              </Link>
            }
            second={policy.description === '' ? policy.actions.join(', ') : policy.description}
            end={<Tag isWord>{policy.enabled ? text.effects[policy.mode][policy.effect] : text.off}</Tag>}
          />
        )}
      </Entries>
    </section>
  );
}

interface EntriesProps<T> {
  readonly list: List<T>;
  /** The text in place of an empty list. */
  readonly none: string;
  readonly children: (row: T) => ReactNode;
}

function Entries<T>({ list, none, children }: EntriesProps<T>) {
  if (list.kind === 'loading') return <Skeleton width={3} />;
  if (list.kind === 'failed') return <Problem error={list.error} onRetry={list.retry} />;
  if (list.rows.length === 0) return <Small>{none}</Small>;
  return (
    <>
      <ul>{list.rows.map(children)}</ul>
      {list.more === undefined ? null : (
        <div className={styles.more}>
          <Button small onPress={list.more} isPending={list.isLoadingMore}>
            {common.more}
          </Button>
        </div>
      )}
    </>
  );
}
