/** The next steps if no directory is configured. */

import { useState } from 'react';
import { common } from '../../text/en/common.ts';
import { directory as text } from '../../text/en/directory.ts';
import { Button } from '../../ui/button.tsx';
import { Segments } from '../../ui/field.tsx';
import { Empty, useCopy } from '../../ui/mark.tsx';
import styles from './directory.module.css';

const KINDS = ['active-directory', 'openldap', 'freeipa', '389ds'] as const;

export function NotConfigured() {
  const [kind, setKind] = useState<(typeof KINDS)[number]>('active-directory');
  const { copied, copy } = useCopy();
  return (
    <Empty
      title={text.notConfigured}
      action={
        <div className={styles.sample}>
          <div className={styles.head}>
            <Segments
              label={text.kind}
              value={kind}
              onChange={setKind}
              options={KINDS.map((value) => ({ value, label: text.kinds[value] }))}
            />
            <Button onPress={() => copy(text.sample[kind])}>{copied ? common.copied : common.copy}</Button>
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways, which the keyboard must be able to do. */}
          <pre className={styles.snippet} tabIndex={0}>
            {text.sample[kind]}
          </pre>
        </div>
      }
    >
      {text.notConfiguredSays}
    </Empty>
  );
}
