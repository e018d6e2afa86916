/** When the supervisor takes a silent process for one that hangs. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { afterTick, hangs, NO_SILENCE, type Silence } from '../../src/cli/silence.ts';
import { runs } from '../support/properties.ts';

/** A report, or a tick of the supervisor, in milliseconds after the previous one. */
type Event = 'report' | number;

const PROMPT_MS = 100;
const LATE_MS = 5_000;

function silenceAfter(events: readonly Event[]): Silence {
  return events.reduce<Silence>(
    (silence, event) => (event === 'report' ? NO_SILENCE : afterTick(silence, event)),
    NO_SILENCE,
  );
}

const ticks = (count: number, ms: number): Event[] => Array.from({ length: count }, () => ms);

it('a gate hangs after 8 prompt ticks without a report, and an API process after 100 ticks', () => {
  expect([7, 8].map((count) => hangs('gate', silenceAfter(ticks(count, PROMPT_MS))))).toEqual([false, true]);
  expect([99, 100].map((count) => hangs('api', silenceAfter(ticks(count, PROMPT_MS))))).toEqual([false, true]);
});

it('a machine that sleeps, and a supervisor that runs late, do not make a gate hang', () => {
  expect(hangs('gate', silenceAfter([3_600_000, ...ticks(7, PROMPT_MS)]))).toBe(false);
  expect(hangs('gate', silenceAfter(ticks(99, LATE_MS)))).toBe(false);
  expect(hangs('gate', silenceAfter(ticks(100, LATE_MS)))).toBe(true);
});

it('only the ticks since the last report count, of which late ones count for the long bound only', () => {
  const event = fc.oneof(
    { weight: 1, arbitrary: fc.constant<Event>('report') },
    { weight: 40, arbitrary: fc.constantFrom<Event>(PROMPT_MS, 200, 201, LATE_MS) },
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 250 }), fc.constantFrom('gate', 'api'), (events, kind) => {
      const since = events.slice(events.lastIndexOf('report') + 1);
      const prompt = since.filter((ms) => Number(ms) <= 200);
      const expected = since.length >= 100 || (kind === 'gate' && prompt.length >= 8);
      expect(hangs(kind, silenceAfter(events))).toBe(expected);
    }),
    { numRuns: runs(2_000) },
  );
});
