import { difference as text } from '../../text/en/difference.ts';
import { classes } from '../../ui/classes.ts';
import { DAY_HOURS, DAYS, hoursOf } from './hours.ts';
import styles from './week-grid.module.css';

const HOURS = Array.from({ length: DAY_HOURS }, (_, hour) => hour);
const LABELLED_HOURS = 6;

interface WeekPictureProps {
  readonly windows: readonly string[];
  readonly isDenied: boolean;
}

/** The week grid to look at. Windows that do not begin and end at full hours have no picture, only their text. */
export function WeekPicture({ windows, isDenied }: WeekPictureProps) {
  const hours = hoursOf(windows);
  if (hours === undefined) return null;
  return (
    <div className={styles.picture} role="img" aria-label={text.weekOf(windows.join(', '))}>
      <span />
      {HOURS.map((hour) => (
        <span key={hour} className={styles.hour}>
          {hour % LABELLED_HOURS === 0 ? <span>{String(hour).padStart(2, '0')}</span> : null}
        </span>
      ))}
      {DAYS.map((name, day) => [
        <span key={name} className={styles.day}>
          {name}
        </span>,
        ...HOURS.map((hour) => {
          const isLit = hours[day * DAY_HOURS + hour] === true;
          return (
            <span
              key={`${name} ${hour}`}
              className={classes(styles.cell, isLit && styles.lit, isLit && isDenied && styles.denies)}
            />
          );
        }),
      ])}
    </div>
  );
}
