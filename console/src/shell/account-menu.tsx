/** The caller, at the foot of the rail: the account, and the ways out. */

import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { client, signOut } from '../api/client.ts';
import { useMe } from '../api/session.ts';
import { common } from '../text/en/common.ts';
import { session } from '../text/en/session.ts';
import { Button } from '../ui/button.tsx';
import { Hidden } from '../ui/mark.tsx';
import { Ask, Menu } from '../ui/overlay.tsx';
import { Refused } from '../ui/refused.tsx';
import { useMayLeave } from './leave.tsx';
import styles from './shell.module.css';

export function AccountMenu() {
  const me = useMe();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const mayLeave = useMayLeave();
  const [error, setError] = useState<unknown>();
  const leave = async (everywhere: boolean): Promise<void> => {
    if (!(await mayLeave())) return;
    try {
      if (everywhere) await client.sessions.endOthers();
    } catch (reason) {
      return setError(reason);
    }
    let elsewhere: string | undefined;
    let isConfirmed = true;
    try {
      elsewhere = await signOut();
    } catch {
      isConfirmed = false;
    }
    queries.clear();
    // The provider leads back to the sign-in page.
    if (elsewhere !== undefined) return location.assign(elsewhere);
    await navigate({ to: '/sign-in', search: isConfirmed ? {} : { over: 'unconfirmed' } });
  };
  const close = (): void => setError(undefined);
  return (
    <>
      <Menu
        className={styles.me}
        choices={[
          { id: session.account, label: session.account, onChoose: () => void navigate({ to: '/account' }) },
          { id: session.signOut, label: session.signOut, onChoose: () => void leave(false) },
          { id: session.signOutEverywhere, label: session.signOutEverywhere, onChoose: () => void leave(true) },
        ]}
      >
        <Hidden>{session.account}: </Hidden>
        <span className={styles.face} aria-hidden="true">
          {initials(me.name)}
        </span>
        <span>
          <b>{me.name}</b>
          <small>{me.roles.join(', ') || me.email}</small>
        </span>
      </Menu>
      {error === undefined ? null : (
        <Ask
          title={session.signOutEverywhere}
          onClose={close}
          actions={<Button onPress={close}>{common.close}</Button>}
        >
          <Refused error={error} />
          <p>{session.notSignedOut}</p>
        </Ask>
      )}
    </>
  );
}

function initials(name: string): string {
  const words = name.split(/\s+/).filter((word) => word !== '');
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return letters.map((word) => word?.[0]?.toUpperCase() ?? '').join('');
}
