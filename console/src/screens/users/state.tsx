/** How it stands with a user, and who gave which role. */

import type { User } from '../../../../client/index.ts';
import { users as text } from '../../text/en/users.ts';
import { Icon } from '../../ui/icon.tsx';
import { State, Tag } from '../../ui/mark.tsx';
import { useNow } from '../../ui/time.tsx';
import styles from './users.module.css';

/** Reports whether the directory keeps the user from signing in. */
export function isSuspended({ directory_status: status }: User): boolean {
  return status !== undefined && status !== 'active';
}

/** Until when failed logins lock the account; null: they do not, or no longer. */
export function useLockedUntil({ locked_until: until }: User): string | null {
  const now = useNow();
  return until === null || Date.parse(until) <= now ? null : until;
}

export function UserState({ user }: { readonly user: User }) {
  const { status, directory_status: directory, email_conflict: conflict } = user;
  const lockedUntil = useLockedUntil(user);
  if (status === 'deactivated') return <State tone="off">{text.statuses.deactivated}</State>;
  if (directory !== undefined && directory !== 'active')
    return <State tone="deny">{text.directoryStates[directory]}</State>;
  if (lockedUntil !== null) return <State tone="care">{text.locked}</State>;
  if (conflict !== undefined && conflict !== null) return <State tone="care">{text.conflict}</State>;
  return <State>{text.statuses.active}</State>;
}

const SHOWN = 3;

const MARKS = { hand: (name: string) => name, directory: text.directoryMark, issuer: text.issuerMark } as const;

/** The roles given by hand, then those that the directory and issuers give, marked so. */
export function RoleTags({ user }: { readonly user: User }) {
  const all = [
    ...user.roles.map((name) => ({ name, by: 'hand' as const })),
    ...user.directory_roles.map((name) => ({ name, by: 'directory' as const })),
    ...user.issuer_roles.map((name) => ({ name, by: 'issuer' as const })),
  ];
  const left = all.length - SHOWN;
  if (all.length === 0) return <span>{text.noRoles}</span>;
  return (
    <span className={styles.roles}>
      {all.slice(0, SHOWN).map(({ name, by }) => (
        <Tag key={`${name} ${by}`}>
          {by === 'hand' ? null : <Icon name={by} size={12} />}
          {MARKS[by](name)}
        </Tag>
      ))}
      {left > 0 ? <Tag>+{left}</Tag> : null}
    </span>
  );
}
