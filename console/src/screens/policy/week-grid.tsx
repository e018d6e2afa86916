/**
 * A grid of seven days with 24 hours. A drag of the pointer fills the rectangle that it spans. For the keyboard, the
 * grid is one stop of Tab. The name of a day or of an hour changes the whole row or column. On a touch screen, a tap
 * changes one cell, a long press draws, and an immediate move scrolls the page, because the grid may fill the screen.
 */

import { type KeyboardEvent, type MouseEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import { serverNow } from '../../api/clock.ts';
import { policies as text } from '../../text/en/policies.ts';
import { classes } from '../../ui/classes.ts';
import { Hidden } from '../../ui/mark.tsx';
import { areLit, DAY_HOURS, DAYS, filled, type Hours, isBetween, type Place, placeAt } from './hours.ts';
import styles from './week-grid.module.css';

interface WeekGridProps {
  readonly hours: Hours;
  readonly onChange: (hours: Hours) => void;
  /** The meaning of a lit cell, and of a dark one. */
  readonly lit: string;
  readonly dark: string;
  /** Lit hours are hours of denial. */
  readonly litDenies: boolean;
  /** The clock on which "now" is marked; undefined: it is not. */
  readonly zone: string | undefined;
  /** The id of what describes the grid: the sentence below it. */
  readonly describedBy: string;
}

interface Drag {
  readonly from: Place;
  /** The hours before the drag. */
  readonly base: Hours;
  readonly isLit: boolean;
}

/** A finger on a cell that neither scrolls nor draws yet. */
interface Touch {
  readonly place: Place;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** How long a finger rests on a cell before it draws. */
const HOLD_MS = 300;
const LABELLED_HOURS = 3;
const MINUTE_MS = 60_000;
const HOURS = Array.from({ length: DAY_HOURS }, (_, hour) => hour);

export function WeekGrid({ hours, onChange, lit, dark, litDenies, zone, describedBy }: WeekGridProps) {
  const grid = useRef<HTMLTableElement>(null);
  const drag = useRef<Drag>(undefined);
  const touch = useRef<Touch>(undefined);
  const [cursor, setCursor] = useState<Place>({ day: 0, hour: 8 });
  const [anchor, setAnchor] = useState<Place>();
  const now = useNow(zone);
  const from = anchor ?? cursor;

  const focus = (place: Place, options?: FocusOptions): void => {
    setCursor(place);
    elementAt(grid.current, place)?.focus(options);
  };
  const toggle = (place: Place): boolean => {
    const isLit = !areLit(hours, place, place);
    setAnchor(undefined);
    focus(place, { preventScroll: true });
    onChange(filled(hours, place, place, isLit));
    return isLit;
  };
  const draw = (place: Place): void => {
    touch.current = undefined;
    drag.current = { from: place, base: hours, isLit: toggle(place) };
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === ' ') {
      onChange(filled(hours, from, cursor, !areLit(hours, cursor, cursor)));
    } else if (event.key === 'Escape' && anchor !== undefined) setAnchor(undefined);
    else {
      const next = moved(cursor, event.key, isTurned(grid.current));
      if (next === undefined) return;
      setAnchor(event.shiftKey ? from : undefined);
      focus(next);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const onPointerDown = (event: PointerEvent): void => {
    const place = placeOf(event.target);
    letGo(touch.current);
    touch.current = undefined;
    if (place === undefined || isName(place) || event.button !== 0 || !event.isPrimary) return;
    // A touch would keep sending its moves to the cell that it began on.
    if (event.target instanceof Element && event.target.hasPointerCapture(event.pointerId))
      event.target.releasePointerCapture(event.pointerId);
    if (event.pointerType === 'mouse') {
      event.preventDefault();
      draw(place);
    } else touch.current = { place, timer: setTimeout(() => draw(place), HOLD_MS) };
  };
  const onPointerUp = (): void => {
    if (touch.current === undefined) return;
    letGo(touch.current);
    toggle(touch.current.place);
    touch.current = undefined;
  };
  // Names take a whole press, because a finger that scrolls the page may begin on one. Screen readers press cells
  // without a pointer (detail 0).
  const onClick = (event: MouseEvent): void => {
    const place = placeOf(event.target);
    if (place !== undefined && (isName(place) || event.detail === 0)) toggle(place);
  };
  const onPointerMove = (event: PointerEvent): void => {
    const begun = drag.current;
    if (begun === undefined || !event.isPrimary) return;
    const place = placeOf(document.elementFromPoint(event.clientX, event.clientY));
    if (place === undefined || (place.day === cursor.day && place.hour === cursor.hour)) return;
    focus(place, { preventScroll: true });
    onChange(filled(begun.base, begun.from, place, begun.isLit));
  };
  useEffect(() => {
    const table = grid.current;
    const end = (): void => {
      drag.current = undefined;
      letGo(touch.current);
      touch.current = undefined;
    };
    // React's own listener is passive, so it cannot keep a finger that draws from scrolling the page.
    const keep = (event: Event): void => {
      if (drag.current !== undefined) event.preventDefault();
    };
    // On some systems a held finger opens a menu, which ends the drag.
    const isHeld = (event: Event): void => {
      if (drag.current !== undefined || touch.current !== undefined) event.preventDefault();
    };
    window.addEventListener('pointerup', end);
    window.addEventListener('pointercancel', end);
    table?.addEventListener('touchmove', keep, { passive: false });
    table?.addEventListener('contextmenu', isHeld);
    return () => {
      end();
      window.removeEventListener('pointerup', end);
      window.removeEventListener('pointercancel', end);
      table?.removeEventListener('touchmove', keep);
      table?.removeEventListener('contextmenu', isHeld);
    };
  }, []);

  const tabIndexOf = (day: number, hour: number): number => (cursor.day === day && cursor.hour === hour ? 0 : -1);
  const placeProps = (day: number, hour: number) => ({
    'data-day': day,
    'data-hour': hour,
    onFocus: () => setCursor({ day, hour }),
  });
  return (
    <>
      <table
        ref={grid}
        className={styles.week}
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table whose cells are chosen is a grid (WAI-ARIA).
        role="grid"
        aria-label={text.grid}
        aria-describedby={describedBy}
        aria-multiselectable="true"
        onKeyDown={onKeyDown}
        onClick={onClick}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
      >
        <thead>
          <tr>
            <th
              scope="col"
              className={styles.corner}
              aria-label={text.wholeWeek}
              tabIndex={tabIndexOf(-1, -1)}
              {...placeProps(-1, -1)}
            >
              {text.weekShort}
            </th>
            {HOURS.map((hour) => (
              <th
                key={hour}
                scope="col"
                className={styles.hour}
                aria-label={text.wholeHour(clock(hour))}
                tabIndex={tabIndexOf(-1, hour)}
                {...placeProps(-1, hour)}
              >
                {hour % LABELLED_HOURS === 0 ? <span>{clock(hour).slice(0, 2)}</span> : <Hidden>{clock(hour)}</Hidden>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {DAYS.map((name, day) => (
            <tr key={name}>
              <th
                scope="row"
                className={styles.day}
                aria-label={text.wholeDay(text.dayNames[name])}
                tabIndex={tabIndexOf(day, -1)}
                {...placeProps(day, -1)}
              >
                {name}
              </th>
              {HOURS.map((hour) => {
                const isLit = hours[day * DAY_HOURS + hour] === true;
                return (
                  <td
                    key={hour}
                    // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of a grid, which can be selected.
                    role="gridcell"
                    tabIndex={tabIndexOf(day, hour)}
                    aria-selected={isLit}
                    aria-label={text.cell(text.dayNames[name], clock(hour), clock(hour + 1))}
                    className={classes(
                      styles.cell,
                      isLit && styles.lit,
                      isLit && litDenies && styles.denies,
                      anchor !== undefined && isBetween({ day, hour }, anchor, cursor) && styles.marked,
                      now?.day === day && now.hour === hour && styles.now,
                    )}
                    {...placeProps(day, hour)}
                  />
                );
              })}
              <td className={styles.sum}>
                {text.litHours(HOURS.filter((hour) => hours[day * DAY_HOURS + hour] === true).length)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className={styles.legend}>
        <span>
          <i className={classes(styles.swatch, styles.lit, litDenies && styles.denies)} />
          {lit}
        </span>
        <span>
          <i className={styles.swatch} />
          {dark}
        </span>
        {now === undefined ? null : (
          <span>
            <i className={classes(styles.swatch, styles.now)} />
            {text.now}
          </span>
        )}
        <span>{text.litWeek(hours.filter(Boolean).length)}</span>
        <span className={styles.touch}>{text.byTouch}</span>
        <span className={styles.help} aria-hidden="true">
          <kbd>←</kbd>
          <kbd>↑</kbd> {text.keys.move} <kbd>{text.keys.shift}</kbd> {text.keys.extend} <kbd>{text.keys.space}</kbd>{' '}
          {text.keys.light}
        </span>
        <Hidden>{text.gridHelp}</Hidden>
      </div>
    </>
  );
}

function letGo(touch: Touch | undefined): void {
  if (touch !== undefined) clearTimeout(touch.timer);
}

/** Reports whether the place is the name of a day or an hour, or of the week. */
function isName({ day, hour }: Place): boolean {
  return day < 0 || hour < 0;
}

function clock(hour: number): string {
  return `${String(hour).padStart(2, '0')}:00`;
}

function elementAt(grid: HTMLElement | null, { day, hour }: Place): HTMLElement | null {
  return grid?.querySelector<HTMLElement>(`[data-day="${day}"][data-hour="${hour}"]`) ?? null;
}

function placeOf(target: EventTarget | null): Place | undefined {
  const element = target instanceof Element ? target.closest<HTMLElement>('[data-day]') : null;
  if (element === null) return undefined;
  return { day: Number(element.dataset['day']), hour: Number(element.dataset['hour']) };
}

/** Reports whether days are columns, as on a narrow screen. */
function isTurned(grid: HTMLElement | null): boolean {
  const first = elementAt(grid, { day: 0, hour: 0 })?.getBoundingClientRect();
  const second = elementAt(grid, { day: 0, hour: 1 })?.getBoundingClientRect();
  return first !== undefined && second !== undefined && second.top > first.top;
}

const MOVES: Readonly<Record<string, readonly [down: number, right: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** @returns undefined for a key that moves nothing */
function moved({ day, hour }: Place, key: string, turned: boolean): Place | undefined {
  if (key === 'Home') return { day, hour: 0 };
  if (key === 'End') return { day, hour: DAY_HOURS - 1 };
  const move = MOVES[key];
  if (move === undefined) return undefined;
  const [days, hours] = turned ? [move[1], move[0]] : move;
  return { day: bounded(day + days, DAYS.length), hour: bounded(hour + hours, DAY_HOURS) };
}

/** From -1, the names, to the last. */
function bounded(index: number, length: number): number {
  return Math.max(-1, Math.min(index, length - 1));
}

function useNow(zone: string | undefined): Place | undefined {
  const [time, setTime] = useState(() => new Date(serverNow()));
  useEffect(() => {
    const timer = setInterval(() => setTime(new Date(serverNow())), MINUTE_MS);
    return () => clearInterval(timer);
  }, []);
  return zone === undefined ? undefined : placeAt(time, zone);
}
