/** The three headers that carry a credential, through a real Envoy, the gate, the cache and a real database. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CaseStand, startCaseStand } from '../support/case-stand.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { type Answer, type NamedServer, send, startServer } from '../support/http.ts';

let edge: Edge;
let stand: CaseStand;
let platform: NamedServer;
let key: string;
let otherKey: string;
let token: string;

beforeAll(async () => {
  stand = await startCaseStand();
  platform = await startServer((incoming, outgoing) => {
    outgoing.setHeader('x-request-id', 'of-the-platform');
    outgoing.end(JSON.stringify({ server: 'upstream', headers: incoming.headers }));
  });
  edge = await startEdge({ ...stand, upstream: platform.address });
  const bare = async (as: string): Promise<string> => (await stand.authorizationOf(as)).replace('Bearer ', '');
  [key, otherKey, token] = [await bare('k-chat'), await bare('k-globex'), await bare('ana')];
});
afterAll(async () => {
  await edge?.stop();
  await stand?.close();
  platform?.close();
});

/** A chat request, which the scopes of the key permit. */
const ask = (headers: Readonly<Record<string, string>>): Promise<Answer> =>
  send(edge.url, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'x-forwarded-for': '203.0.113.10', 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'llama-3-70b', messages: [{ role: 'user', content: 'hi' }] }),
  });
const codeOf = ({ body }: Answer): string => {
  const said = JSON.parse(body);
  return said.server === 'upstream' ? 'allow' : said.code;
};

describe('an API key', () => {
  it.each(['x-api-key', 'api-key', 'X-Api-Key', 'API-KEY'])(
    'is accepted in the header %s, which the platform does not get',
    async (name) => {
      const answer = await ask({ [name]: key });
      expect([answer.status, codeOf(answer)]).toEqual([200, 'allow']);
      expect(answer.body).not.toContain(key);
      expect(JSON.parse(answer.body).headers).not.toHaveProperty(name.toLowerCase());
    },
  );

  it('is accepted in all three headers at once, none of which the platform gets', async () => {
    const answer = await ask({ authorization: `Bearer ${key}`, 'x-api-key': key, 'api-key': key });
    expect([answer.status, codeOf(answer)]).toEqual([200, 'allow']);
    expect(answer.body).not.toContain(key);
  });

  it.each([
    ['Authorization and x-api-key', () => ({ authorization: `Bearer ${key}`, 'x-api-key': otherKey })],
    ['Authorization and api-key', () => ({ authorization: `Bearer ${otherKey}`, 'api-key': key })],
    ['x-api-key and api-key', () => ({ 'x-api-key': key, 'api-key': otherKey })],
    ['an access token and x-api-key', () => ({ authorization: `Bearer ${token}`, 'x-api-key': key })],
    ['another scheme and x-api-key', () => ({ authorization: 'Basic YTpi', 'x-api-key': key })],
  ])('is refused when %s differ', async (_, headers) => {
    const answer = await ask(headers());
    expect([answer.status, codeOf(answer)]).toEqual([401, 'invalid_credential']);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="postern", error="invalid_token"');
  });

  it.each([
    ['an access token', () => token],
    ['a scheme before the key', () => `Bearer ${key}`],
    ['two keys in one line', () => `${key},${otherKey}`],
    ['a key of which the checksum is wrong', () => `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`],
  ])('header refuses %s', async (_, value) => {
    for (const name of ['x-api-key', 'api-key']) {
      const answer = await ask({ [name]: value() });
      expect([answer.status, codeOf(answer)]).toEqual([401, 'invalid_credential']);
    }
  });
});

describe('the challenge of a 401', () => {
  it.each(['Basic YTpi', 'Digest username="a"', 'Negotiate', 'Token abc'])(
    'names no error for the scheme of "%s"',
    async (authorization) => {
      const answer = await ask({ authorization });
      expect([answer.status, codeOf(answer)]).toEqual([401, 'invalid_credential']);
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="postern"');
    },
  );

  it('names the error for a Bearer token that is not valid', async () => {
    const answer = await ask({ authorization: 'Bearer nobody-knows-this' });
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="postern", error="invalid_token"');
  });
});

describe('the request id', () => {
  it("comes with each of the platform's answers, in place of one that the platform sets", async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await ask({ 'x-api-key': key })).headers['x-request-id']);
    expect(ids).toEqual(ids.map(() => expect.stringMatching(/^req_[0-9a-z]{26}$/)));
    expect(new Set(ids).size).toBe(3);
  });
});
