/** The frame of a screen: title, what there is to say about it, its one primary action. */

import { type ReactNode, useEffect } from 'react';
import styles from './page.module.css';

interface PageProps {
  readonly title: string;
  readonly says?: ReactNode;
  readonly crumb?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, says, crumb, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Postern`;
  }, [title]);
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <div>
          {crumb === undefined ? null : <div className={styles.crumb}>{crumb}</div>}
          <h1>{title}</h1>
          {says === undefined ? null : <p>{says}</p>}
        </div>
        {actions === undefined ? null : <div className={styles.acts}>{actions}</div>}
      </header>
      {children}
    </div>
  );
}

/** The one statement that a page makes. */
export function Sentence({ children }: { readonly children: ReactNode }) {
  return <p className={styles.sentence}>{children}</p>;
}

/** Search and filters above a list. The first child has the width of a search field. */
export function Tools({ children, end }: { readonly children: ReactNode; readonly end?: ReactNode }) {
  return (
    <div className={styles.tools}>
      {children}
      {end === undefined ? null : <span className={styles.end}>{end}</span>}
    </div>
  );
}

export function SectionHead({
  title,
  small,
  link,
}: {
  readonly title: string;
  readonly small?: ReactNode;
  readonly link?: ReactNode;
}) {
  return (
    <div className={styles.section}>
      <h2>{title}</h2>
      {small === undefined ? null : <small>{small}</small>}
      {link}
    </div>
  );
}
