/** The parts of a role, a policy or a key without effect, such as a pattern that matches no permission. */

import type { Notice } from '../../../client/index.ts';
import { common } from '../text/en/common.ts';
import { Icon } from './icon.tsx';
import { Hidden, Note } from './mark.tsx';
import styles from './notices.module.css';

export function Notices({ notices = [] }: { readonly notices: readonly Notice[] | undefined }) {
  return notices.map(({ path, message }) => (
    <Note key={`${path} ${message}`} tone="care">
      {message}
    </Note>
  ));
}

/** Beside a name in a list. The message is read with it, and shown on hover. */
export function NoticeMark({ notices = [] }: { readonly notices: readonly Notice[] | undefined }) {
  if (notices.length === 0) return null;
  const message = notices.map((notice) => notice.message).join(' ');
  return (
    <span className={styles.mark} title={message}>
      <Icon name="care" size={14} />
      <Hidden>
        {common.needsCare} {message}
      </Hidden>
    </span>
  );
}
