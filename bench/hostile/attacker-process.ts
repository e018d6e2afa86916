/** Runs one attack as a process of its own, so that its clock and garbage are not the innocents'. */

import type { Ammunition, Tally, Target } from './attack.ts';
import { ATTACKS } from './attacks/all.ts';

export interface Order {
  readonly number: number;
  readonly target: Target;
  readonly ammunition: Ammunition;
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
}

process.once('disconnect', () => process.exit(0));
process.once('message', async (order: Order) => {
  const attack = ATTACKS.find(({ number }) => number === order.number);
  if (attack === undefined) throw new Error(`There is no attack ${order.number}.`);
  const tally: Tally = await attack.run(order.target, order.ammunition, order.untilMs);
  process.send?.(tally, () => process.disconnect?.());
});
process.send?.('ready');
