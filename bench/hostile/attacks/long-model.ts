/** Attack 10: an upstream whose answer names a model of many bytes, which Envoy's filter cuts within a character. */

import { ATTACKER, ATTACKER_ADDRESS, type Attack, count, makeAttacker, paced, type Tally } from '../attack.ts';
import { Connection, nameOf } from '../connection.ts';

const PER_SECOND = 10;
const TIMEOUT_MS = 10_000;
const MAX_TOKENS = 2;
/** The name is of characters of three bytes, so wherever it is cut, one of three lengths that follow each other is cut within one. */
const LENGTHS = [40_000, 40_001, 40_002, 9000, 9001, 9002, 300];

export const longModel: Attack = {
  number: 10,
  title: 'an answer that names a long model',
  async prepare(stand) {
    await makeAttacker(stand);
    const { key } = await stand.administrator.makeKey(ATTACKER, { scopes: ['chat:*'] });
    return { credentials: [key] };
  },
  async run({ edge }, { credentials = [] }, untilMs) {
    const tally: Tally = {};
    const connection = new Connection(edge, ATTACKER_ADDRESS);
    await paced(PER_SECOND, untilMs, async (index) => {
      const length = LENGTHS[index % LENGTHS.length] ?? 0;
      count(tally, nameOf(await ask(connection, credentials[0] ?? '', length, index % 2 === 0)));
    });
    connection.close();
    return tally;
  },
};

function ask(connection: Connection, key: string, length: number, stream: boolean) {
  const request = { method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${key}` };
  const messages = [{ role: 'user', content: 'x' }];
  const body = {
    model: 'llama-3',
    max_tokens: MAX_TOKENS,
    messages,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
  };
  return connection.send({ ...request, body: JSON.stringify(body), headers: { 'x-demo': `long-model=${length}` } }, TIMEOUT_MS);
}
