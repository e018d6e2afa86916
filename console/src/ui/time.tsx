/** Times in the viewer's zone, with UTC on hover. */

import { useSyncExternalStore } from 'react';
import { serverNow } from '../api/clock.ts';
import { time as text } from '../text/en/time.ts';
import { Small } from './mark.tsx';

const MINUTE_MS = 60_000;
const TICK_MS = 30_000;
const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', MINUTE_MS],
];

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'short' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });

/** `2 min. ago`, kept true while the page is open. */
export function Ago({ time }: { readonly time: string | null }) {
  const now = useNow();
  if (time === null) return <span>{text.never}</span>;
  const at = new Date(time);
  const ms = at.getTime() - now;
  return <Stamp time={time}>{Math.abs(ms) < MINUTE_MS ? text.justNow : distance(ms)}</Stamp>;
}

/** How long until then, with the day beneath. */
export function Until({ time }: { readonly time: string | null }) {
  const now = useNow();
  if (time === null) return <span>{text.noEnd}</span>;
  const at = new Date(time);
  return (
    <Stamp time={time}>
      {distance(at.getTime() - now)}
      <Small>{day.format(at)}</Small>
    </Stamp>
  );
}

/** Day and time. */
export function Moment({ time }: { readonly time: string }) {
  return <Stamp time={time}>{full.format(new Date(time))}</Stamp>;
}

function Stamp({ time, children }: { readonly time: string; readonly children: React.ReactNode }) {
  const at = new Date(time);
  return (
    <time dateTime={time} title={`${full.format(at)}\n${at.toISOString().replace('T', ' ').slice(0, 19)} UTC`}>
      {children}
    </time>
  );
}

/** The largest unit that fits: `in 6 days`, `3 hr. ago`. */
export function distance(ms: number): string {
  const [unit, length] = UNITS.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? ['minute', MINUTE_MS];
  return relative.format(Math.trunc(ms / length), unit).replaceAll('.', '');
}

const clock = {
  now: serverNow(),
  listeners: new Set<() => void>(),
  timer: undefined as ReturnType<typeof setInterval> | undefined,
};

/** Must be the same function in each render: React subscribes again to another one. */
function subscribe(listener: () => void): () => void {
  clock.listeners.add(listener);
  if (clock.timer === undefined) {
    // Nothing has kept the time while no screen showed one.
    clock.now = serverNow();
    clock.timer = setInterval(() => {
      clock.now = serverNow();
      for (const notify of clock.listeners) notify();
    }, TICK_MS);
  }
  return () => {
    clock.listeners.delete(listener);
    if (clock.listeners.size > 0) return;
    clearInterval(clock.timer);
    clock.timer = undefined;
  };
}

/** Milliseconds since the epoch, true to half a minute. One timer serves the whole page. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => clock.now);
}
