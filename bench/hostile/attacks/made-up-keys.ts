/** Attack 11: made-up keys with a valid checksum, while valid keys are used for the first time and a global policy changes. */

import { makeApiKey } from '../../../src/identity/api-keys.ts';
import { ATTACKER_ADDRESS, type Attack, count, paced, type Tally } from '../attack.ts';
import { Connection, nameOf } from '../connection.ts';
import { makeColdRequests } from '../innocents.ts';

const CONNECTIONS = 10;
const PER_SECOND = 2000;
const COLD_KEYS = 60;
const CHANGE_EVERY_MS = 1000;
/** Beyond so many without an answer the attacker waits, as its connections do. */
const MAX_UNDER_WAY = 900;
const TIMEOUT_MS = 10_000;
const POLICY = '/v1/iam/policies/bench-global';

export const madeUpKeys: Attack = {
  number: 11,
  title: 'made-up keys, and 60 cold keys of the innocents',
  async prepare({ administrator }) {
    const policy = { name: 'bench-global', effect: 'deny', actions: ['*'], resources: ['models/bench-*'], global: true };
    await administrator.must('POST', '/v1/iam/policies', policy);
    return { credentials: [administrator.token], cold: await makeColdRequests(administrator, COLD_KEYS) };
  },
  async run({ edge, http }, { credentials = [] }, untilMs) {
    const tally: Tally = {};
    const connections = Array.from({ length: CONNECTIONS }, () => new Connection(edge, ATTACKER_ADDRESS));
    let underWay = 0;
    const changes = setInterval(() => void change(http, credentials[0] ?? '', tally), CHANGE_EVERY_MS);
    await paced(PER_SECOND, untilMs, async (index) => {
      if (underWay >= MAX_UNDER_WAY) {
        count(tally, 'not sent');
        return;
      }
      underWay += 1;
      const request = { method: 'GET', path: '/v1/models', authorization: `Bearer ${makeApiKey().text}` };
      const outcome = await connections[index % CONNECTIONS]?.send(request, TIMEOUT_MS);
      underWay -= 1;
      if (outcome !== undefined) count(tally, nameOf(outcome));
    });
    clearInterval(changes);
    for (const connection of connections) connection.close();
    return tally;
  },
};

async function change(http: string, administrator: string, tally: Tally): Promise<void> {
  const headers = { authorization: `Bearer ${administrator}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ description: `as of ${Date.now()}` });
  const answer = await fetch(`http://${http}${POLICY}`, { method: 'PUT', headers, body }).catch(() => undefined);
  await answer?.body?.cancel();
  count(tally, `global policy changed: ${answer?.status ?? 'lost'}`);
}
