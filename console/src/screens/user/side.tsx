/** Beside what a user may do: the roles with who gave them, and the account. */

import { Link } from '@tanstack/react-router';
import type { User } from '../../../../client/index.ts';
import { useDenied } from '../../api/session.ts';
import { metadata as metadataText } from '../../text/en/metadata.ts';
import { rates as ratesText } from '../../text/en/rates.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Entry } from '../../ui/courses.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Id, Small, Tag } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Ago, Moment, Until } from '../../ui/time.tsx';
import { SaidRates } from '../rates/said-rates.tsx';
import { UserState, useLockedUntil } from '../users/state.tsx';
import styles from './side.module.css';
import { SideKeys } from './side-keys.tsx';

export function Side({ user, onEdit }: { readonly user: User; readonly onEdit: () => void }) {
  const denied = useDenied('admin:users');
  const lockedUntil = useLockedUntil(user);
  return (
    <>
      <section>
        <div className={styles.head}>
          <SectionHead title={text.roles} />
          <Button small onPress={onEdit} disabledReason={denied}>
            {text.change}
          </Button>
        </div>
        {user.roles.length + user.directory_roles.length + user.issuer_roles.length === 0 ? (
          <Small>{text.noRoles}</Small>
        ) : null}
        <ul>
          {user.directory_roles.map((name) => (
            <RoleEntry key={`directory ${name}`} name={name} by="directory" />
          ))}
          {user.issuer_roles.map((name) => (
            <RoleEntry key={`issuer ${name}`} name={name} by="issuer" />
          ))}
          {user.roles.map((name) => (
            <RoleEntry key={name} name={name} by="user" />
          ))}
        </ul>
      </section>
      <section>
        <SectionHead title={text.account} />
        <Facts
          facts={[
            { name: text.state, value: <UserState user={user} /> },
            { name: text.source, value: text.sourceName(user.source) },
            { name: text.department, value: user.department },
            { name: text.tenant, value: user.tenant_id },
            { name: text.lastLogin, value: <Ago time={user.last_login_at} /> },
            {
              name: text.locked,
              value: lockedUntil === null ? text.notLocked : <Until time={lockedUntil} />,
            },
            {
              name: ratesText.title,
              value: (user.rate_limits ?? []).length === 0 ? null : <SaidRates limits={user.rate_limits ?? []} />,
            },
            { name: text.created, value: <Moment time={user.created_at} /> },
            { name: text.changed, value: <Moment time={user.updated_at} /> },
            { name: text.id, value: <Id value={user.id} /> },
          ]}
        />
        {user.source === 'ldap' ? <Small>{text.keptSays}</Small> : null}
      </section>
      {user.identities.length === 0 ? null : (
        <section>
          <SectionHead title={text.identities} />
          <ul>
            {user.identities.map(({ issuer, subject }) => (
              <Entry
                key={`${issuer} ${subject}`}
                icon={<Icon name="issuer" />}
                name={issuer}
                second={<Id value={subject} shown={subject} />}
              />
            ))}
          </ul>
        </section>
      )}
      {Object.keys(user.metadata).length === 0 ? null : (
        <section>
          <SectionHead title={metadataText.label} />
          <Facts facts={Object.entries(user.metadata).map(([name, value]) => ({ name, value }))} />
        </section>
      )}
      <SideKeys user={user} />
    </>
  );
}

const GIVERS = { user: text.byHand, directory: text.byDirectory, issuer: text.byIssuer } as const;

function RoleEntry({ name, by }: { readonly name: string; readonly by: keyof typeof GIVERS }) {
  return (
    <Entry
      icon={<Icon name={by} />}
      name={
        <Link to="/roles/$name" params={{ name }} className={styles.role}>
          {name}
        </Link>
      }
      end={<Tag isWord>{GIVERS[by]}</Tag>}
    />
  );
}
