/** A new secret, shown once: to copy, as a file, and as a command to try. Neither Esc nor a press outside closes it. */

import type { IssuedApiKey } from '../../../../client/index.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Note, useCopy } from '../../ui/mark.tsx';
import { Ask } from '../../ui/overlay.tsx';
import { saveAs } from '../../ui/save.ts';
import { SecretDialog } from '../../ui/secret-dialog.tsx';
import { sampleOf } from '../connect/sample.ts';
import { curlOf, envOf } from '../connect/snippets.ts';
import styles from './keys.module.css';

interface ShownOnceProps {
  readonly issued: IssuedApiKey;
  readonly onClose: () => void;
}

export function ShownOnce({ issued, onClose }: ShownOnceProps) {
  const { id: tenant } = useTenant();
  const secret = useCopy();
  const command = useCopy();
  const { key } = issued;
  if (key === undefined) {
    return (
      <Ask
        title={text.shownTitle(nameOf(issued))}
        actions={<Button onPress={onClose}>{common.close}</Button>}
        onClose={onClose}
      >
        <Note tone="care">{text.shownLost}</Note>
      </Ask>
    );
  }
  const curl = curlOf(location.origin, sampleOf(issued), key);
  const env = `# ${tenant}: ${nameOf(issued).replace(/\s+/g, ' ')}\n${envOf(location.origin, key)}`;
  return (
    <SecretDialog
      title={text.shownTitle(nameOf(issued))}
      saved={text.saved}
      onClose={onClose}
      actions={
        <Button onPress={() => saveAs(`${issued.prefix}.env`, new Blob([env], { type: 'text/plain' }))}>
          <Icon name="export" />
          {text.download}
        </Button>
      }
    >
      <p>{text.shownOnce}</p>
      <div className={styles.secret}>
        <code>{key}</code>
        <Button tone="primary" onPress={() => secret.copy(key)} autoFocus>
          <Icon name="copy" />
          {secret.copied ? common.copied : text.copyKey}
        </Button>
      </div>
      <div className={styles.command}>
        <span>{text.curl}</span>
        <pre>
          <code>{curl}</code>
        </pre>
        <div className={styles.acts}>
          <Button small onPress={() => command.copy(curl)}>
            {command.copied ? common.copied : text.copyCurl}
          </Button>
        </div>
      </div>
    </SecretDialog>
  );
}
