/** The passage: the steps as open arches, up to the deciding step. The steps after it are one line. */

import type { ReactNode } from 'react';
import { common } from '../text/en/common.ts';
import { classes } from './classes.ts';
import { Hidden } from './mark.tsx';
import styles from './passage.module.css';

export interface PassageStep {
  /** `12`, or `13–18` for several that were not reached. */
  readonly number: string;
  readonly name: string;
  readonly says: ReactNode;
  /**
   * passed: an open arch. stopped: a closed arch. arrived: the last arch, lit. skipped: a step after the deciding one.
   */
  readonly kind: 'passed' | 'stopped' | 'arrived' | 'skipped';
  /** A word at the end of the line. */
  readonly mark?: string | undefined;
}

export function Passage({ label, steps }: { readonly label: string; readonly steps: readonly PassageStep[] }) {
  return (
    <ol className={styles.passage} aria-label={label}>
      {steps.map(({ number, name, says, kind, mark }) => (
        <li key={number} className={classes(kind !== 'passed' && styles[kind])}>
          <Gate isClosed={kind === 'stopped'} />
          <span className={styles.number}>{number}</span>
          <span className={styles.name}>
            {name}
            {kind === 'passed' ? <Hidden> {common.passed}</Hidden> : null}
          </span>
          <div className={styles.says}>{says}</div>
          <span className={styles.mark}>{mark}</span>
        </li>
      ))}
    </ol>
  );
}

function Gate({ isClosed }: { readonly isClosed: boolean }) {
  return (
    <svg viewBox="0 0 14 16" aria-hidden="true">
      {isClosed ? (
        <path className={styles.door} fillRule="evenodd" d={CLOSED} />
      ) : (
        <path className={styles.gate} d="M1.5 15.2V7a5.5 5.5 0 0 1 11 0v8.2z" />
      )}
    </svg>
  );
}

const CLOSED =
  'M.5 15.7V7a6.5 6.5 0 0 1 13 0v8.7zM7 4.6a2.1 2.1 0 0 0-1.05 3.92L5.2 12.5h3.6l-.75-3.98A2.1 2.1 0 0 0 7 4.6z';

/** The statement of a page that judges: a closed door or an open arch, large, and the sentence beside it. */
export function Verdict({ isOpen, children }: { readonly isOpen: boolean; readonly children: ReactNode }) {
  return (
    <div className={styles.verdict} role="status">
      <svg viewBox="0 0 14 16" aria-hidden="true">
        {isOpen ? (
          <path className={styles.open} d="M1.5 15.2V7a5.5 5.5 0 0 1 11 0v8.2z" />
        ) : (
          <path className={styles.door} fillRule="evenodd" d={CLOSED} />
        )}
      </svg>
      <div>{children}</div>
    </div>
  );
}

/** One thing that the deciding step looked at: whether it held, what it is called, what was compared. */
export function Looked({
  holds,
  name,
  children,
}: {
  readonly holds: boolean | undefined;
  readonly name: ReactNode;
  readonly children: ReactNode;
}) {
  const mark = holds === undefined ? 'M3.5 8h9' : holds ? 'M3 8.5l3.3 3.3L13 4.8' : 'M4 4l8 8M12 4l-8 8';
  return (
    <div className={styles.looked}>
      <svg
        viewBox="0 0 16 16"
        width={16}
        height={16}
        fill="none"
        stroke="currentColor"
        strokeWidth={1.4}
        aria-hidden="true"
      >
        <path d={mark} />
      </svg>
      <span>{name}</span>
      <span>{children}</span>
    </div>
  );
}
