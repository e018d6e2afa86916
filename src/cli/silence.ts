/**
 * Decides when a silent process hangs. The supervisor counts ticks of its own timer, so a machine that slept adds only
 * one tick. A late tick does not show that the process hangs, because the machine or the supervisor was late as well.
 */

/** The interval between the reports of a process, in milliseconds. */
export const REPORT_EVERY_MS = 200;
/** The interval between the supervisor's ticks, in milliseconds. */
export const TICK_MS = 100;
/** A tick after a longer time is late. */
const LATE_AFTER_MS = 2 * TICK_MS;
/** Prompt ticks without a report after which a gate hangs: it holds checks that another gate could answer. */
const GATE_PROMPT_TICKS = 8;
/** Ticks without a report, prompt or late, after which any process hangs. */
const TICKS = 100;

export interface Silence {
  readonly ticks: number;
  readonly promptTicks: number;
}

/** Right after a report. */
export const NO_SILENCE: Silence = { ticks: 0, promptTicks: 0 };

/** @param sinceLastMs time from the previous tick to this one */
export function afterTick({ ticks, promptTicks }: Silence, sinceLastMs: number): Silence {
  return { ticks: ticks + 1, promptTicks: promptTicks + (sinceLastMs > LATE_AFTER_MS ? 0 : 1) };
}

/** Reports whether the process hangs. */
export function hangs(kind: 'gate' | 'api', { ticks, promptTicks }: Silence): boolean {
  return ticks >= TICKS || (kind === 'gate' && promptTicks >= GATE_PROMPT_TICKS);
}
