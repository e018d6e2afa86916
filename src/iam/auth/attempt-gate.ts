/**
 * Attempts under way in this process, by account and by address. An attempt counts as a failure until it has succeeded, so several
 * correct logins at once can look like too many failures: who is refused while others are still under way waits for one of them to end
 * and asks again, and is refused for good when none is left.
 */

import { Refusal } from '../../domain/errors.ts';

/** Whoever would have to wait behind more than that gets 503, as when too many passwords wait. */
const MAX_WAITING = 64;
const RETRY_AFTER_SECONDS = 1;

interface Place {
  /** Attempts that look at this place: while there is one, it is kept. */
  users: number;
  underWay: number;
  /** Attempts that ended here so far. */
  ended: number;
  /** Slots that are being asked for. */
  readonly asks: Set<Promise<boolean>>;
  readonly waiting: (() => void)[];
}

/** One attempt's view of one account or address. */
export interface GatePlace {
  /** Asks for a slot with `claim`, again each time that an attempt ended meanwhile. False = refused with none under way. */
  enter(claim: () => Promise<boolean>): Promise<boolean>;
  /**
   * Enters by a slot that is being asked for together with others' places, if `ask` says that it was granted. False = not by this one;
   * whatever it took is given back by then.
   */
  enterBy(ask: Promise<boolean>): Promise<boolean>;
  /** The attempt ended, whatever its outcome. Must be called once, entered or not. */
  leave(): void;
}

export class AttemptGate {
  readonly #places = new Map<string, Place>();

  /** Places in use; 0 when nobody is logging in. */
  get size(): number {
    return this.#places.size;
  }

  open(name: string): GatePlace {
    const place = this.#places.get(name) ?? {
      users: 0,
      underWay: 0,
      ended: 0,
      asks: new Set<Promise<boolean>>(),
      waiting: [],
    };
    this.#places.set(name, place);
    place.users++;
    let entered = false;
    const enter = (): true => {
      entered = true;
      place.underWay++;
      return true;
    };
    return {
      enterBy: async (ask) => {
        if (await asked(place, () => ask)) return enter();
        // It may have held a slot for a moment: whoever was refused meanwhile asks again.
        place.ended++;
        return false;
      },
      enter: async (claim) => {
        for (;;) {
          const { ended } = place;
          if (await asked(place, claim)) return enter();
          // Who was let in may hear of it later than who was refused because of that.
          if (place.underWay === 0) await Promise.allSettled(place.asks);
          if (place.ended !== ended) continue;
          if (place.underWay === 0) return false;
          await turn(place);
        }
      },
      leave: () => {
        if (entered) {
          place.underWay--;
          place.ended++;
        }
        // One at a time: whoever is woken wakes the next when it leaves, claimed or refused.
        place.waiting.shift()?.();
        place.users--;
        if (place.users === 0) this.#places.delete(name);
      },
    };
  }
}

async function asked({ asks }: Place, claim: () => Promise<boolean>): Promise<boolean> {
  const ask = claim();
  asks.add(ask);
  try {
    return await ask;
  } finally {
    asks.delete(ask);
  }
}

function turn(place: Place): Promise<void> {
  if (place.waiting.length >= MAX_WAITING) {
    throw new Refusal('unavailable', 'Too many logins are under way at once. Try again shortly.', {
      retryAfter: RETRY_AFTER_SECONDS,
    });
  }
  return new Promise((resolve) => place.waiting.push(resolve));
}
