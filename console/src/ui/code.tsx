/** Text for machines, with a button that copies it. */

import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import styles from './code.module.css';
import { Icon } from './icon.tsx';
import { useCopy } from './mark.tsx';

interface CodeProps {
  readonly title: string;
  readonly code: string;
  readonly onCopied?: () => void;
}

export function Code({ title, code, onCopied }: CodeProps) {
  const { copied, copy } = useCopy(onCopied);
  return (
    <figure className={styles.figure}>
      <figcaption className={styles.caption}>
        {title}
        <Button tone="quiet" small label={copied ? undefined : common.copyOf(title)} onPress={() => copy(code)}>
          <Icon name="copy" size={12} />
          {copied ? common.copied : common.copy}
        </Button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <pre className={styles.code} tabIndex={0}>
        {code}
      </pre>
    </figure>
  );
}
