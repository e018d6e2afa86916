/** Attack 5: a tenant whose policies are at their bound, and a change of one each second while the tenant is in use. */

import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKER, ATTACKER_ADDRESS, type Attack, count, makeAttacker, type Tally } from '../attack.ts';
import { Connection, nameOf } from '../connection.ts';
import { type GlobForm, hostileGlobs } from './globs.ts';

const GLOBS: GlobForm = { entries: 200, stars: 8, length: 256 };
/** Each takes 50 KB; the bound was 4 MiB. */
const MAX_POLICIES = 200;
const CHANGE_EVERY_MS = 1000;
const USES_PER_CHANGE = 5;
const TIMEOUT_MS = 10_000;

export const fullTenant: Attack = {
  number: 5,
  title: 'a tenant full of policies, one changed each second',
  async prepare(stand) {
    const token = await makeAttacker(stand, ['tenant-admin']);
    const { key } = await stand.administrator.makeKey(ATTACKER, { scopes: ['models:read'] });
    let made = 0;
    for (; made < MAX_POLICIES; made++) {
      const answer = await stand.administrator.call('POST', '/v1/iam/policies', policyOf(made), {
        'x-tenant-id': ATTACKER,
      });
      if (answer.status !== 201) break;
    }
    const bytes = made * JSON.stringify(policyOf(0).resources).length;
    return { credentials: [token, key], form: `${made} policies, ${(bytes / 1_048_576).toFixed(1)} MiB` };
  },
  async run({ edge, http }, { credentials = [] }, untilMs) {
    const [token = '', key = ''] = credentials;
    const tally: Tally = {};
    const agent = new Agent({ keepAlive: true });
    const connection = new Connection(edge, ATTACKER_ADDRESS);
    for (let change = 0; Date.now() < untilMs; change++) {
      const beganMs = Date.now();
      count(tally, `change ${await put(agent, http, token, { description: `change ${change}` })}`);
      for (let use = 0; use < USES_PER_CHANGE; use++) {
        const read = { method: 'GET', path: '/v1/models', authorization: `Bearer ${key}` };
        count(tally, `use ${nameOf(await connection.send(read, TIMEOUT_MS))}`);
      }
      await sleep(Math.max(0, beganMs + CHANGE_EVERY_MS - Date.now()));
    }
    connection.close();
    agent.destroy();
    return tally;
  },
};

function policyOf(index: number) {
  const resources = hostileGlobs(GLOBS, `models/${index}-`);
  return { name: `p-${index}`, effect: 'deny', actions: ['chat:*'], resources };
}

function put(agent: Agent, http: string, token: string, change: object): Promise<string> {
  const [host = '', port = ''] = http.split(':');
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = request({ agent, host, port, method: 'PUT', path: '/v1/iam/policies/p-0', headers }, (answer) => {
      answer.resume();
      answer.once('close', () => resolve(String(answer.statusCode)));
    });
    sent.setTimeout(TIMEOUT_MS, () => sent.destroy());
    sent.once('error', (error) => resolve(`lost: ${error.message}`));
    sent.end(JSON.stringify(change));
  });
}
