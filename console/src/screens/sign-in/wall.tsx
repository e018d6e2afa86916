/** Courses of stone around the arch. Decoration: assistive technology does not meet it. */

import styles from './sign-in.module.css';

const COURSE = 60;
const STONE = 120;
const COURSES = Array.from({ length: 15 }, (_, row) => row);
const STONES = Array.from({ length: 14 }, (_, column) => column);

export function Wall() {
  return (
    <svg className={styles.wall} viewBox="0 0 1440 900" preserveAspectRatio="xMidYMax slice" aria-hidden="true">
      {COURSES.map((row) =>
        STONES.map((column) => (
          <rect
            key={`${row} ${column}`}
            className={styles.stone}
            x={column * STONE - (row % 2) * (STONE / 2) - STONE}
            y={row * COURSE}
            width={STONE}
            height={COURSE}
          />
        )),
      )}
      <path className={styles.arch} d="M478 900V450a242 242 0 0 1 484 0v450z" />
      <path className={styles.leaf} d="M518 900V450a202 202 0 0 1 404 0v450z" />
    </svg>
  );
}
