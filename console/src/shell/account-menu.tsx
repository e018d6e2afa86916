/** The caller, at the foot of the rail: the account, and the ways out. */

import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { signOut } from '../api/client.ts';
import { useMe } from '../api/session.ts';
import { session } from '../text/en/session.ts';
import { Menu } from '../ui/overlay.tsx';
import styles from './shell.module.css';

export function AccountMenu() {
  const me = useMe();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const roles = me.roles.join(', ') || (me.email ?? '');
  const leave = async (everywhere: boolean): Promise<void> => {
    // Whatever became of the call, nothing of the session is left in this page.
    await signOut({ everywhere }).catch(() => undefined);
    queries.clear();
    await navigate({ to: '/sign-in', search: {} });
  };
  return (
    <Menu
      label={`${initials(me.name)} ${me.name} ${roles}. ${session.account}`}
      className={styles.me}
      choices={[
        { id: session.account, label: session.account, onChoose: () => void navigate({ to: '/account' }) },
        { id: session.signOut, label: session.signOut, onChoose: () => void leave(false) },
        { id: session.signOutEverywhere, label: session.signOutEverywhere, onChoose: () => void leave(true) },
      ]}
    >
      <span className={styles.face}>{initials(me.name)}</span>{' '}
      <span>
        <b>{me.name}</b> <small>{roles}</small>
      </span>
    </Menu>
  );
}

function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => word !== '');
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return letters.map((word) => word?.[0]?.toUpperCase() ?? '').join('');
}
