import type { ReactNode } from 'react';
import styles from './courses.module.css';

/** The main column, and one beside it for what accompanies it. Below 1180 px the second goes below the first. */
export function Courses({ main, side }: { readonly main: ReactNode; readonly side: ReactNode }) {
  return (
    <div className={styles.courses}>
      <div className={styles.main}>{main}</div>
      <div className={styles.side}>{side}</div>
    </div>
  );
}

/** A name with a second line, an icon before it and a word at its end. */
export function Entry({
  icon,
  name,
  second,
  end,
}: {
  readonly icon?: ReactNode;
  readonly name: ReactNode;
  readonly second?: ReactNode;
  readonly end?: ReactNode;
}) {
  return (
    <li className={styles.entry}>
      {icon}
      <p>
        {name}
        {second === undefined ? null : <small>{second}</small>}
      </p>
      {end}
    </li>
  );
}
