/** The secret of a webhook, shown once. Neither Esc nor a press outside closes it. */

import { common } from '../../text/en/common.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { Button } from '../../ui/button.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Note, useCopy } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { SecretDialog } from '../../ui/secret-dialog.tsx';
import styles from './webhooks.module.css';

interface SecretProps {
  /** Undefined: the answer that held it was lost. */
  readonly secret: string | undefined;
  /** True: it replaces another one. */
  readonly isRotated: boolean;
  readonly onClose: () => void;
}

export function Secret({ secret, isRotated, onClose }: SecretProps) {
  const { copied, copy } = useCopy();
  if (secret === undefined) {
    return (
      <Ask title={text.secretTitle} actions={<Button onPress={onClose}>{common.close}</Button>} onClose={onClose}>
        <Note tone="care">{text.secretLost}</Note>
      </Ask>
    );
  }
  return (
    <SecretDialog title={text.secretTitle} saved={text.secretSaved} onClose={onClose}>
      <p>{text.secretOnce}</p>
      {isRotated ? <p>{text.secretOld}</p> : null}
      <div className={styles.secret}>
        <code>{secret}</code>
        <Button tone="primary" onPress={() => copy(secret)} autoFocus>
          <Icon name="copy" />
          {copied ? common.copied : text.copySecret}
        </Button>
      </div>
    </SecretDialog>
  );
}
