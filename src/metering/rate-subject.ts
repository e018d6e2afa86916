/** One limited subject as this process sees it: its windows, and how much of it is asked for. */

import { Demand } from './demand.ts';
import { newRateWindow, type RateWindow } from './rate-window.ts';

/** The window of now and the next, and around a border the one before. */
const MAX_WINDOWS = 3;

export class RateSubject {
  readonly name: string;
  readonly demand: Demand;
  /** The limit of the last check; it comes with every check, and a raised one counts at once. */
  limit = 0;
  /** Since it was last looked at for being forgotten. */
  used = true;
  #windows: RateWindow[] = [];
  #stranded = 0;

  constructor(name: string, nowMs: number) {
    this.name = name;
    this.demand = new Demand(nowMs);
  }

  get windows(): readonly RateWindow[] {
    return this.#windows;
  }

  window(number: number): RateWindow {
    for (const window of this.#windows) if (window.number === number) return window;
    const made = newRateWindow(number);
    this.#windows = [...this.#windows, made].sort((a, b) => a.number - b.number);
    while (this.#windows.length > MAX_WINDOWS) this.#stranded += this.#windows.shift()?.left ?? 0;
    return made;
  }

  /** Requests leased and left of windows that are over; told once. */
  takeStranded(): number {
    const stranded = this.#stranded;
    this.#stranded = 0;
    return stranded;
  }
}
