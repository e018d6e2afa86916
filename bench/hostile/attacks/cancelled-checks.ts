/** Attack 8: requests that reserve many tokens, reset by their client at once. */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  ATTACKER,
  ATTACKER_ADDRESS,
  type Attack,
  count,
  makeAttacker,
  mostAccepted,
  paced,
  type Tally,
} from '../attack.ts';
import { Connection, type Request } from '../connection.ts';
import { openRaw, type RawConnection, requestFrames, resetFrame } from '../raw-http2.ts';
import type { Stand } from '../stand.ts';

const PER_SECOND = 60;
const CHOICES: readonly [number, ...number[]] = [200, 128, 16];
/** Between the request and its reset: in one packet, while the check runs, after its answer was written. */
const DELAYS_MS = [0, 0, 1, 2, 4, 8];
/** Fewer than Envoy allows before it looks at the share of streams that were reset. */
const STREAMS_PER_CONNECTION = 200;
const RELEASE_TIMEOUT_MS = 30_000;
const POLL_MS = 500;
const TIMEOUT_MS = 10_000;

export const cancelledChecks: Attack = {
  number: 8,
  title: 'requests with n: 200, reset at once',
  async prepare(stand) {
    await makeAttacker(stand);
    const { key } = await stand.administrator.makeKey(ATTACKER, { scopes: ['chat:*'] });
    const connection = new Connection(stand.edge, '127.0.0.1');
    const choices = await mostAccepted(CHOICES, async (n) => {
      const outcome = await connection.send(requestOf(key, n), TIMEOUT_MS);
      return outcome.kind === 'reply' && outcome.status === 200;
    });
    connection.close();
    return { credentials: [key], counts: [choices], form: `n: ${choices}` };
  },
  async run({ edge }, { credentials = [], counts = [] }, untilMs) {
    const tally: Tally = {};
    const request = requestOf(credentials[0] ?? '', counts[0] ?? 1);
    let connection: Promise<RawConnection> | undefined;
    await paced(PER_SECOND, untilMs, async (index) => {
      if (index % STREAMS_PER_CONNECTION === 0) connection = undefined;
      connection ??= openRaw(edge, ATTACKER_ADDRESS);
      const current = await connection.catch(() => undefined);
      if (current === undefined || current.isOver()) {
        count(tally, 'not sent');
        connection = undefined;
        return;
      }
      const stream = current.nextStream();
      const delayMs = DELAYS_MS[index % DELAYS_MS.length] ?? 0;
      const frames = requestFrames(stream, request);
      current.write(delayMs === 0 ? [...frames, resetFrame(stream)] : frames);
      if (delayMs > 0) {
        await sleep(delayMs);
        current.write([resetFrame(stream)]);
      }
      count(tally, 'requests reset');
    });
    return tally;
  },
  async after(stand) {
    const beganMs = performance.now();
    const most = await reserved(stand);
    let left = most;
    while (left > 0 && performance.now() - beganMs < RELEASE_TIMEOUT_MS) {
      await sleep(POLL_MS);
      left = await reserved(stand);
    }
    const seconds = Math.round((performance.now() - beganMs) / 1000);
    const note = `reserved after the attack ${most}, ${seconds} s later ${left}`;
    return { note, broken: left === 0 ? [] : [`${left} tokens are still reserved ${seconds} s after the last reset`] };
  },
};

function requestOf(key: string, n: number): Request {
  const body = JSON.stringify({ model: 'llama-3', messages: [{ role: 'user', content: 'x' }], max_tokens: 4096, n });
  return { method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${key}`, body };
}

/** Tokens that are reserved of the attacker's quota. */
async function reserved({ administrator }: Stand): Promise<number> {
  const limits = await administrator.must('GET', `/v1/iam/tenants/${ATTACKER}/limits`);
  const { reserved: tokens } = limits['monthly_tokens'] as { readonly reserved: number };
  return tokens;
}
