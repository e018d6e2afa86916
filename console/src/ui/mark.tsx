/** Small things that say a state, a name or a sentence: shape and word together, never colour alone. */

import { type ReactNode, useEffect, useState } from 'react';
import { Button } from 'react-aria-components';
import { common } from '../text/en/common.ts';
import { classes } from './classes.ts';
import { Icon, type IconName } from './icon.tsx';
import styles from './mark.module.css';

/** good: a filled arch. off: a hollow arch. care: an amber arch. deny: a square. */
export type StateTone = 'good' | 'care' | 'off' | 'deny';

export function State({ tone = 'good', children }: { readonly tone?: StateTone; readonly children: ReactNode }) {
  return <span className={classes(styles.state, tone !== 'good' && styles[tone])}>{children}</span>;
}

/** A permission, a model, a CIDR: what machines read. `isWord`: what people say, such as `by hand`. */
export function Tag({ children, isWord = false }: { readonly children: ReactNode; readonly isWord?: boolean }) {
  return <span className={classes(styles.tag, isWord && styles.word)}>{children}</span>;
}

/** The first few of a list, and how many more there are. */
export function Tags({ values, atMost = 2 }: { readonly values: readonly string[]; readonly atMost?: number }) {
  const shown = values.length > atMost ? values.slice(0, atMost) : values;
  const left = values.length - shown.length;
  return (
    <span className={styles.tags}>
      {shown.map((value) => (
        <Tag key={value}>{value}</Tag>
      ))}
      {left > 0 ? <Tag>+{left}</Tag> : null}
    </span>
  );
}

const COPIED_MS = 2000;

/** Copies, and says so in its place. */
export function useCopy(onCopied?: () => void): { readonly copied: boolean; readonly copy: (text: string) => void } {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (text: string): void => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true);
      onCopied?.();
    });
  };
  return { copied, copy };
}

/**
 * An id, shortened in the middle; a press copies all of it. `shown` says how it looks when it is shortened another way.
 */
export function Id({ value, shown }: { readonly value: string; readonly shown?: string }) {
  const { copied, copy } = useCopy();
  const text = copied ? common.copied : (shown ?? shortened(value));
  return (
    <Button className={styles.id} aria-label={`${text} ${common.copyOf(value)}`} onPress={() => copy(value)}>
      <span className={copied ? styles.copied : undefined}>{text}</span>
      <Icon name="copy" size={12} />
    </Button>
  );
}

/** `key_01J8…9F2K` */
export function shortened(id: string): string {
  return id.length <= 16 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
}

interface NoteProps {
  readonly tone?: 'plain' | 'good' | 'care' | 'deny';
  readonly icon?: IconName;
  readonly children: ReactNode;
  readonly action?: ReactNode;
  /** True for what happened just now: it is read out. */
  readonly isLive?: boolean;
}

export function Note({ tone = 'plain', icon, children, action, isLive = false }: NoteProps) {
  const icons = { plain: 'policy', good: 'check', care: 'care', deny: 'lock' } as const;
  return (
    <div className={classes(styles.note, tone !== 'plain' && styles[tone])} role={isLive ? 'status' : undefined}>
      <Icon name={icon ?? icons[tone]} />
      <div>{children}</div>
      {action}
    </div>
  );
}

/** A second, grey line. */
export function Small({ children }: { readonly children: ReactNode }) {
  return <span className={styles.small}>{children}</span>;
}

export function Skeleton({ width = 2 }: { readonly width?: 1 | 2 | 3 }) {
  return <span className={classes(styles.skeleton, styles[`w${width}`])} data-loading="" />;
}

/** An empty state: the missing resource, its purpose, and the next step. */
export function Empty({
  title,
  children,
  action,
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}) {
  return (
    <div className={styles.empty}>
      <strong>{title}</strong>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** Read out, not shown. */
export function Hidden({ children, id }: { readonly children: ReactNode; readonly id?: string }) {
  return (
    <span id={id} className={styles.vh}>
      {children}
    </span>
  );
}
