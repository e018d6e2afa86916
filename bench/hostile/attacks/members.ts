/** Attack 4: bodies of 1 MB with 100,000 distinct members, by a valid key. */

import { ATTACKER, type Attack, hammer, makeAttacker } from '../attack.ts';

const CONNECTIONS = 2;
/** Without the bounds, one body took 160 to 230 ms of the event loop: no more than 6 a second were answered. */
const PER_SECOND = 10;
const MEMBERS = 100_000;
const BODY_BYTES = 1_040_000;

export const members: Attack = {
  number: 4,
  title: 'a body of 100,000 members',
  async prepare(stand) {
    await makeAttacker(stand);
    const { key } = await stand.administrator.makeKey(ATTACKER, { scopes: ['chat:*'] });
    return { credentials: [key] };
  },
  run({ edge }, { credentials = [] }, untilMs) {
    const some = Array.from({ length: MEMBERS }, (_, i) => `"${i.toString(36)}":1`).join(',');
    const body = `{"model":"llama-3",${some}}`.padEnd(BODY_BYTES);
    const request = { method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${credentials[0]}`, body };
    return hammer(edge, CONNECTIONS, request, untilMs, PER_SECOND);
  },
};
