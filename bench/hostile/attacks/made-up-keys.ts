/**
 * Attack 11: made-up keys with a valid checksum, while valid keys are used for the first time and a global policy
 * changes.
 */

import { makeApiKey } from '../../../src/identity/api-keys.ts';
import { ATTACKER_ADDRESS, type Attack, count, paced, type Tally } from '../attack.ts';
import { codeOf, type Edge } from '../connection.ts';
import { makeColdRequests } from '../innocents.ts';
import { openRaw, requestFrames } from '../raw-http2.ts';

const CONNECTIONS = 10;
const PER_SECOND = 2000;
/** 40 in the quiet time and 60 during the attack, if both have their default lengths. */
const COLD_KEYS = 100;
const CHANGE_EVERY_MS = 1000;
/** Requests in flight on each connection. Envoy allows 100 streams at once. */
const MAX_UNDER_WAY = 100;
const POLICY = '/v1/iam/policies/bench-global';

export const madeUpKeys: Attack = {
  number: 11,
  title: 'made-up keys, and cold keys of the innocents',
  async prepare({ administrator }) {
    const policy = {
      name: 'bench-global',
      effect: 'deny',
      actions: ['*'],
      resources: ['models/bench-*'],
      global: true,
    };
    await administrator.must('POST', '/v1/iam/policies', policy);
    return { credentials: [administrator.token], cold: await makeColdRequests(administrator, COLD_KEYS) };
  },
  async run({ edge, http }, { credentials = [] }, untilMs) {
    const tally: Tally = {};
    const senders = await Promise.all(Array.from({ length: CONNECTIONS }, () => openSender(edge, tally)));
    const changes = setInterval(() => void change(http, credentials[0] ?? '', tally), CHANGE_EVERY_MS);
    await paced(PER_SECOND, untilMs, (index) => senders[index % CONNECTIONS]?.send());
    clearInterval(changes);
    for (const sender of senders) sender.close();
    return tally;
  },
};

interface Sender {
  send(): void;
  close(): void;
}

/** Frames are written by hand, because a client that takes a core for itself would slow the innocents by that alone. */
async function openSender(edge: Edge, tally: Tally): Promise<Sender> {
  let underWay = 0;
  const ended = (_stream: number, body: string | undefined): void => {
    underWay -= 1;
    count(tally, body === undefined ? 'reset' : (codeOf(body) ?? (body === '' ? 'empty' : 'allowed')));
  };
  const connection = await openRaw(edge, ATTACKER_ADDRESS, { ended });
  return {
    send() {
      if (underWay >= MAX_UNDER_WAY || connection.isOver()) {
        count(tally, 'not sent');
        return;
      }
      underWay += 1;
      const request = { method: 'GET', path: '/v1/models', authorization: `Bearer ${makeApiKey().text}` };
      connection.write(requestFrames(connection.nextStream(), request));
    },
    close: () => connection.close(),
  };
}

async function change(http: string, administrator: string, tally: Tally): Promise<void> {
  const headers = { authorization: `Bearer ${administrator}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ description: `as of ${Date.now()}` });
  const answer = await fetch(`http://${http}${POLICY}`, { method: 'PUT', headers, body }).catch(() => undefined);
  await answer?.body?.cancel();
  count(tally, `global policy changed: ${answer?.status ?? 'lost'}`);
}
