/** A part of the overview. If the caller may not read it, it stays in its place and says what it needs. */

import type { ReactNode } from 'react';
import { useDenied } from '../../api/session.ts';
import styles from './overview.module.css';

interface SectionProps {
  readonly head: ReactNode;
  /** The required permission; absent if every user may read it. */
  readonly needs?: string;
  readonly children: ReactNode;
}

export function Section({ head, needs, children }: SectionProps) {
  return (
    <section>
      {head}
      {needs === undefined ? children : <Guarded needs={needs}>{children}</Guarded>}
    </section>
  );
}

function Guarded({ needs, children }: { readonly needs: string; readonly children: ReactNode }) {
  const denied = useDenied(needs);
  return denied === undefined ? children : <p className={styles.soft}>{denied}</p>;
}
