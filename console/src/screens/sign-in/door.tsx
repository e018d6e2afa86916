/** The page before the console: a form in the arch of a door. */

import { type ReactNode, useEffect } from 'react';
import { Mark } from '../../ui/icon.tsx';
import styles from './sign-in.module.css';
import { Wall } from './wall.tsx';

export function Door({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · Postern`;
  }, [title]);
  return (
    <div className={styles.page}>
      <Wall />
      <main className={styles.door}>
        <div className={styles.mark}>
          <Mark size={40} />
        </div>
        <h1>{title}</h1>
        {children}
      </main>
    </div>
  );
}
