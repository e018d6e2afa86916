import type { ReactNode } from 'react';
import styles from './two-columns.module.css';

/** A question at the left, its answer at the right; one below the other where there is no room. */
export function TwoColumns({ side, children }: { readonly side: ReactNode; readonly children: ReactNode }) {
  return (
    <div className={styles.columns}>
      <div>{side}</div>
      <div>{children}</div>
    </div>
  );
}
