/** A one-time link to set a password, shown once. Neither Esc nor a press outside closes it. */

import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Note, useCopy } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { SecretDialog } from '../../ui/secret-dialog.tsx';
import styles from './users.module.css';

interface SetupLinkProps {
  readonly name: string;
  /** Undefined: the answer that held it was lost. */
  readonly token: string | undefined;
  readonly onClose: () => void;
}

export function SetupLink({ name, token, onClose }: SetupLinkProps) {
  const { copied, copy } = useCopy();
  if (token === undefined) {
    return (
      <Ask title={text.linkTitle(name)} actions={<Button onPress={onClose}>{common.close}</Button>} onClose={onClose}>
        <Note tone="care">{text.linkLost}</Note>
      </Ask>
    );
  }
  // The token is in the fragment, which browsers send to no server.
  const link = `${location.origin}/console/set-password#token=${token}`;
  return (
    <SecretDialog title={text.linkTitle(name)} saved={text.saved} onClose={onClose}>
      <p>{text.linkOnce}</p>
      <div className={styles.secret}>
        <code>{link}</code>
        <Button tone="primary" onPress={() => copy(link)} autoFocus>
          <Icon name="copy" />
          {copied ? common.copied : text.copyLink}
        </Button>
      </div>
    </SecretDialog>
  );
}
