/** A closed door in its wall. Decoration: the sentence beside it says the same. */

import styles from './closed.module.css';

const WALL =
  'M0 40H38M202 40H240M0 100H20M220 100H240M0 160H38M202 160H240M0 220H20M220 220H240M18 40V100M222 40V100M0 259H240' +
  'M36 259V124a84 84 0 0 1 168 0V259M36 124H60M180 124H204M41 96L64 104M199 96L176 104M57 68L78 82M183 68L162 82M83 49L97 69' +
  'M157 49L143 69M109 41L113 64M131 41L127 64M36 170H60M36 215H60M180 170H204M180 215H204';

export function ClosedDoor() {
  return (
    <svg className={styles.door} viewBox="0 0 240 260" aria-hidden="true">
      <path className={styles.stones} d={WALL} />
      <path className={styles.leaf} d="M60 259V124a60 60 0 0 1 120 0V259z" />
      <path className={styles.keyhole} d="M120 142a13 13 0 0 0-6.5 24.3l-5 30.7h23l-5-30.7A13 13 0 0 0 120 142z" />
    </svg>
  );
}
