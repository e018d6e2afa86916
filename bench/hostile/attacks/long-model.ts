/** Attack 10: an upstream whose answer names a model of many bytes, which Envoy's filter cuts within a character. */

import { ATTACKER, ATTACKER_ADDRESS, type Attack, count, makeAttacker, paced, type Tally } from '../attack.ts';
import { Connection, nameOf } from '../connection.ts';

const PER_SECOND = 2;
const TIMEOUT_MS = 10_000;
const MAX_TOKENS = 2;
/**
 * Long enough to reach Envoy in several pieces. Characters of three bytes: of three cuts at odd places, two fall within
 * one.
 */
const LENGTHS = [300_000, 300_001, 300_002, 12_001, 600_001];

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
      count(tally, nameOf(await ask(connection, credentials[0] ?? '', length)));
    });
    connection.close();
    return tally;
  },
};

function ask(connection: Connection, key: string, length: number) {
  const request = { method: 'POST', path: '/v1/chat/completions', authorization: `Bearer ${key}` };
  const messages = [{ role: 'user', content: 'x' }];
  const answer = { max_tokens: MAX_TOKENS, stream: true, stream_options: { include_usage: true } };
  const body = JSON.stringify({ model: 'llama-3', messages, ...answer });
  return connection.send({ ...request, body, headers: { 'x-demo': `long-model=${length}` } }, TIMEOUT_MS);
}
