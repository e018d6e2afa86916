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
  /** The generation of recent subjects that it is in; see `RecentSubjects`. */
  generation = 0;
  readonly #onStranded: (requests: number) => void;
  #windows: RateWindow[] = [];
  /** The one that was asked for last: of thousands of subjects, each object that a check touches is a wait for memory. */
  #last: RateWindow | undefined;

  /** @param onStranded called with the requests that were left of a window that is over */
  constructor(name: string, nowMs: number, onStranded: (requests: number) => void) {
    this.name = name;
    this.#onStranded = onStranded;
    this.demand = new Demand(nowMs);
  }

  get windows(): readonly RateWindow[] {
    return this.#windows;
  }

  window(number: number): RateWindow {
    if (this.#last?.number === number) return this.#last;
    this.#last = this.#windows.find((window) => window.number === number) ?? this.#add(number);
    return this.#last;
  }

  #add(number: number): RateWindow {
    const made = newRateWindow(number);
    const windows = [...this.#windows, made].sort((a, b) => a.number - b.number);
    // The store's clock may have been set back, so the windows farthest from this one go, not the earliest.
    while (windows.length > MAX_WINDOWS) {
      const after = (windows.at(-1)?.number ?? number) - number;
      const before = number - (windows[0]?.number ?? number);
      this.#drop(after > before ? windows.pop() : windows.shift());
    }
    this.#windows = windows;
    return made;
  }

  dropWindows(): void {
    for (const window of this.#windows) this.#drop(window);
    this.#windows = [];
    this.#last = undefined;
  }

  #drop(window: RateWindow | undefined): void {
    if (window === undefined) return;
    window.dropped = true;
    this.#onStranded(window.left);
  }
}
