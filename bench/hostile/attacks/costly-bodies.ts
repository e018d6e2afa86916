/** Attack 13: bodies of 1 MiB that hold what costs most to read, evenly spaced, with one key. */

import { setTimeout as sleep } from 'node:timers/promises';
import { SHAPES } from '../../body-shapes.ts';
import { ATTACKER, type Attack, count, hammer, makeAttacker, type Tally } from '../attack.ts';

const BYTES = 1_040_000;
const PER_SECOND = 8;

export const costlyBodies: Attack = {
  number: 13,
  title: 'bodies that are costly to read',
  async prepare(stand) {
    await makeAttacker(stand);
    const { key } = await stand.administrator.makeKey(ATTACKER, { scopes: ['chat:*'] });
    return { credentials: [key] };
  },
  async run({ edge }, { credentials = [] }, untilMs) {
    const tally: Tally = {};
    const request = { method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${credentials[0] ?? ''}` };
    const each = SHAPES.map(async ([, of], i) => {
      await sleep((i * 1000) / PER_SECOND);
      return hammer(edge, 1, { ...request, body: of(BYTES) }, untilMs, PER_SECOND / SHAPES.length);
    });
    for (const got of await Promise.all(each))
      for (const [name, times] of Object.entries(got)) count(tally, name, times);
    return tally;
  },
};
