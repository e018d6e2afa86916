import styles from './bar.module.css';
import { classes } from './classes.ts';

interface BarProps {
  readonly used: number;
  readonly limit: number;
  readonly reserved?: number;
  /** plain: a share of a whole, which may be all of it. */
  readonly tone?: 'limit' | 'plain';
}

const CARE_FROM = 0.8;

/** How much of a limit is used. The numbers stand beside it, so assistive technology does not meet it. */
export function Bar({ used, limit, reserved = 0, tone = 'limit' }: BarProps) {
  const share = (n: number): number => (limit === 0 ? 1 : Math.min(1, n / limit));
  const total = share(used + reserved);
  const look = classes(styles.bar, tone === 'limit' && (total >= 1 ? styles.full : total >= CARE_FROM && styles.care));
  return (
    <div className={look} aria-hidden="true">
      <span className={styles.used} style={{ width: `${share(used) * 100}%` }} />
      <span className={styles.reserved} style={{ width: `${Math.max(0, total - share(used)) * 100}%` }} />
    </div>
  );
}
