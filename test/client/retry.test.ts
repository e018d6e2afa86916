/** The client and temporary errors, and requests without an answer. */

import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type Client,
  type ClientOptions,
  ConnectionError,
  createClient,
  ProblemError,
  UnexpectedAnswerError,
} from '../../client/index.ts';
import { problem, type ScriptedServer, type Step, startScripted } from './support/scripted.ts';
import { type TestTiming, TIMEOUT_MS, testTiming } from './support/timing.ts';

const KEY = `psk_${'k'.repeat(38)}`;
const GOOD: Step = { status: 200, body: { id: 'usr_1' } };
const BUSY = problem(503, 'unavailable');

interface Stand {
  readonly server: ScriptedServer;
  readonly timing: TestTiming;
  readonly client: Client;
}

async function stand(script: readonly Step[], options: ClientOptions = {}, random?: () => number): Promise<Stand> {
  const server = await startScripted(script);
  onTestFinished(() => server.close());
  const timing = testTiming(random);
  const client = createClient({ baseUrl: server.url, apiKey: KEY, timing, timeoutMs: TIMEOUT_MS, ...options });
  return { server, timing, client };
}

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no failure',
    (error: unknown) => error,
  );
const newUser = { body: { email: 'a@example.com', name: 'A' } };

describe('a read', () => {
  it.each(['408', '429', '500', '502', '503', '504'])('is tried again after %s', async (status) => {
    const { client, server } = await stand([problem(Number(status), 'unavailable'), GOOD]);
    expect(await client.request('GET', '/v1/auth/me')).toEqual({ id: 'usr_1' });
    expect(server.asked).toHaveLength(2);
  });

  it.each(['400', '401', '403', '404', '405', '409', '412', '422'])('is not tried again after %s', async (status) => {
    const { client, server } = await stand([problem(Number(status), 'not_found'), GOOD]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toMatchObject({ status: Number(status) });
    expect(server.asked).toHaveLength(1);
  });

  it.each(['hangUp', 'half'] as const)('is tried again when the connection breaks: %s', async (step) => {
    const { client, server } = await stand([step, GOOD]);
    expect(await client.request('GET', '/v1/auth/me')).toEqual({ id: 'usr_1' });
    expect(server.asked).toHaveLength(2);
  });

  it('is given up after as many tries as are set, with the last error', async () => {
    const { client, server, timing } = await stand([BUSY]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toMatchObject({
      name: 'ProblemError',
      code: 'unavailable',
    });
    expect(server.asked).toHaveLength(3);
    expect(timing.waits).toHaveLength(2);
    expect(await failure(client.request('GET', '/v1/auth/me', { maxRetries: 0 }))).toBeInstanceOf(ProblemError);
    expect(server.asked).toHaveLength(4);
  });
});

describe('the wait', () => {
  it.each([
    [0, [250, 500, 1000, 2000, 4000, 4000]],
    [0.5, [375, 750, 1500, 3000, 6000, 6000]],
  ])('doubles up to a bound, half of it by chance (%d)', async (chance, waits) => {
    const { client, timing } = await stand([BUSY], { maxRetries: 6 }, () => chance);
    await failure(client.request('GET', '/v1/auth/me'));
    expect(timing.waits).toEqual(waits);
  });

  it.each([
    ['seconds', { 'retry-after': '7' }, 7000],
    [
      'a date by the clock of the server',
      { date: 'Sat, 21 Nov 2026 10:00:00 GMT', 'retry-after': 'Sat, 21 Nov 2026 10:00:09 GMT' },
      9000,
    ],
    [
      'a date that is past',
      { date: 'Sat, 21 Nov 2026 10:00:00 GMT', 'retry-after': 'Sat, 21 Nov 2026 09:00:00 GMT' },
      0,
    ],
    ['nothing that can be read', { 'retry-after': 'soon' }, 250],
  ])('is what Retry-After says: %s', async (_form, headers, waitMs) => {
    const { client, timing } = await stand([problem(429, 'rate_limit_exceeded', headers), GOOD]);
    await client.request('GET', '/v1/auth/me');
    expect(timing.waits).toEqual([waitMs]);
  });

  it('is never shorter than Retry-After, and clients with the same Retry-After retry at different times', async () => {
    const { client, timing } = await stand([problem(503, 'unavailable', { 'retry-after': '1' }), GOOD], {}, () => 0.5);
    await client.request('GET', '/v1/auth/me');
    expect(timing.waits).toEqual([1125]);
  });

  it('is skipped if Retry-After exceeds the configured maximum; the error has the value', async () => {
    const { client, server, timing } = await stand([
      problem(429, 'rate_limit_exceeded', { 'retry-after': '61' }),
      GOOD,
    ]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toMatchObject({ status: 429, retryAfter: 61 });
    expect(server.asked).toHaveLength(1);
    expect(timing.waits).toEqual([]);
  });
});

describe('x-should-retry', () => {
  it('false keeps the client from trying again', async () => {
    const { client, server } = await stand([problem(429, 'insufficient_quota', { 'x-should-retry': 'false' }), GOOD]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toMatchObject({ code: 'insufficient_quota' });
    expect(server.asked).toHaveLength(1);
  });

  it('true makes it try again where it would not', async () => {
    const running = problem(409, 'idempotency_in_progress', { 'x-should-retry': 'true', 'retry-after': '1' });
    const { client, server, timing } = await stand([running, { status: 201, body: { id: 'usr_1' } }]);
    expect(await client.request('POST', '/v1/iam/users', newUser)).toEqual({ id: 'usr_1' });
    expect(server.asked).toHaveLength(2);
    expect(timing.waits).toEqual([1000]);
  });

  it('true does not make it repeat what may not be done twice', async () => {
    const { client, server } = await stand([problem(503, 'unavailable', { 'x-should-retry': 'true' })]);
    await failure(client.request('POST', '/v1/auth/password', { body: { old_password: 'a', new_password: 'b' } }));
    expect(server.asked).toHaveLength(1);
  });
});

describe('a POST', () => {
  it('of management carries one Idempotency-Key through all its tries, and another one the next time', async () => {
    const { client, server } = await stand(['hangUp', BUSY, GOOD, GOOD]);
    await client.request('POST', '/v1/iam/users', newUser);
    await client.request('POST', '/v1/iam/users', newUser);
    const keys = server.asked.map(({ headers }) => headers['idempotency-key']);
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(keys).toEqual([keys[0], keys[0], keys[0], keys[3]]);
    expect(keys[3]).not.toBe(keys[0]);
    expect(new Set(server.asked.map(({ body }) => body)).size).toBe(1);
  });

  it('takes the key of its caller', async () => {
    const { client, server } = await stand([GOOD]);
    await client.request('POST', '/v1/iam/users', { ...newUser, idempotencyKey: 'order 17' });
    expect(server.asked[0]?.headers['idempotency-key']).toBe('order 17');
  });

  it.each(['hangUp', BUSY] as const)('without a key is sent once (%o)', async (step) => {
    const { client, server } = await stand([step, GOOD]);
    await failure(client.request('POST', '/v1/auth/password', { body: { old_password: 'a', new_password: 'b' } }));
    expect(server.asked).toHaveLength(1);
    expect(server.asked[0]?.headers['idempotency-key']).toBeUndefined();
  });
});

describe('a signal', () => {
  it('that is over keeps the request from being sent', async () => {
    const { client, server } = await stand([GOOD]);
    const reason = new Error('changed my mind');
    expect(await failure(client.request('GET', '/v1/auth/me', { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(server.asked).toEqual([]);
  });

  it('ends a request that is under way, and there is no other try', async () => {
    const { client, server } = await stand(['silence']);
    const stop = new AbortController();
    const call = failure(client.request('GET', '/v1/auth/me', { signal: stop.signal }));
    await server.arrived(1);
    const reason = new Error('changed my mind');
    stop.abort(reason);
    expect(await call).toBe(reason);
    expect(server.asked).toHaveLength(1);
  });

  it('ends the wait for the next try', async () => {
    const { client, server, timing } = await stand([BUSY]);
    timing.hold = true;
    const stop = new AbortController();
    const call = failure(client.request('GET', '/v1/auth/me', { signal: stop.signal }));
    await timing.waiting;
    const reason = new Error('changed my mind');
    stop.abort(reason);
    expect(await call).toBe(reason);
    expect(server.asked).toHaveLength(1);
  });

  it('ends a stream', async () => {
    const { client } = await stand([{ status: 200, body: '{' }]);
    const stop = new AbortController();
    const answer = await client.stream('GET', '/v1/auth/me', { signal: stop.signal });
    stop.abort(new Error('changed my mind'));
    expect(await failure(answer.text())).toMatchObject({ message: 'changed my mind' });
  });
});

describe('time', () => {
  it('that is over ends a try; a read is tried again, and the last error says what happened', async () => {
    const { client, server, timing } = await stand(['silence']);
    const call = failure(client.request('GET', '/v1/auth/me'));
    for (const count of [1, 2, 3]) {
      await server.arrived(count);
      timing.timeOut();
    }
    const error = await call;
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({
      timedOut: true,
      message: expect.stringContaining(`no answer within ${TIMEOUT_MS} ms`),
    });
    expect(server.asked).toHaveLength(3);
  });

  it('counts up to the end of the answer', async () => {
    const { client, timing } = await stand([{ status: 200, headers: { 'content-length': '100' }, body: '{' }]);
    const call = failure(
      client.request('POST', '/v1/auth/password', { body: { old_password: 'a', new_password: 'b' } }),
    );
    let over = false;
    void call.then(() => {
      over = true;
    });
    while (!over) {
      timing.timeOut();
      await new Promise(setImmediate);
    }
    expect(await call).toMatchObject({ timedOut: true });
  });
});

describe('an answer that is not of Postern', () => {
  it.each([
    ['text/html', '<h1>Bad Gateway</h1>'],
    ['application/json', '{"code":"escalation","detail":"<h1>","request_id":"none"}'],
  ])('is an error without a code of its catalogue when it is a failure: %s', async (type, body) => {
    const { client } = await stand([{ status: 502, headers: { 'content-type': type }, body }]);
    const error = await failure(client.request('GET', '/v1/auth/me'));
    expect(error).toMatchObject({
      status: 502,
      code: 'unknown',
      title: 'Bad Gateway',
      detail: '',
      errors: [],
      requestId: undefined,
    });
    expect(String(error)).not.toContain('<h1>');
  });

  it.each([
    [
      'a page',
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<h1>Please log in to this network</h1>' },
    ],
    ['what is no JSON by its own words', { status: 200, headers: { 'content-type': 'text/html' }, body: '{}' }],
    ['broken JSON', { status: 200, body: '{"id":' }],
  ])('is an error when it is a success: %s', async (_kind, step) => {
    const { client } = await stand([step]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toBeInstanceOf(UnexpectedAnswerError);
  });

  it('that sends elsewhere is not followed', async () => {
    const elsewhere = await startScripted([GOOD]);
    onTestFinished(() => elsewhere.close());
    const { client } = await stand([{ status: 307, headers: { location: `${elsewhere.url}/v1/auth/me` } }]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toBeInstanceOf(ConnectionError);
    expect(elsewhere.asked).toEqual([]);
  });
});

describe('an address', () => {
  it('has its parameters encoded, each in its one segment', async () => {
    const { client, server } = await stand([GOOD]);
    await client.request('GET', '/v1/iam/users/{id}', { path: { id: 'a/b?c#d é' } });
    await client.request('GET', '/v1/iam/users', { query: { q: 'a b&c=d', limit: 5, role: undefined } });
    expect(server.asked.map(({ url }) => url)).toEqual([
      '/v1/iam/users/a%2Fb%3Fc%23d%20%C3%A9',
      '/v1/iam/users?q=a%20b%26c%3Dd&limit=5',
    ]);
  });

  it.each(['', '.', '..'])('that would be that of another resource is refused: "%s"', async (id) => {
    const { client, server } = await stand([GOOD]);
    expect(await failure(client.request('DELETE', '/v1/iam/users/{id}', { path: { id } }))).toBeInstanceOf(TypeError);
    expect(server.asked).toEqual([]);
  });

  it.each(['ftp://example.com', 'https://me:secret-word@example.com', 'https://example.com?x=1', 'example.com'])(
    'of a server that is none is refused, and not repeated: %s',
    (baseUrl) => {
      const make = (): unknown => createClient({ baseUrl });
      expect(make).toThrow(TypeError);
      expect(make).not.toThrow(/secret-word/);
    },
  );

  it('of a server may end in a slash, or have a path', async () => {
    const { server } = await stand([GOOD]);
    await createClient({ baseUrl: `${server.url}/` }).request('GET', '/v1/auth/me');
    await createClient({ baseUrl: `${server.url}/ai/` }).request('GET', '/v1/auth/me');
    expect(server.asked.map(({ url }) => url)).toEqual(['/v1/auth/me', '/ai/v1/auth/me']);
  });
});

describe('an API key', () => {
  it('that is refused is refused: nothing is refreshed', async () => {
    const { client, server } = await stand([problem(401, 'invalid_credential')]);
    expect(await failure(client.request('GET', '/v1/auth/me'))).toMatchObject({ code: 'invalid_credential' });
    expect(server.asked.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /v1/auth/me']);
    expect(server.asked[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  it('has no session to begin or end, and none beside it', async () => {
    const { client } = await stand([GOOD]);
    expect(await client.resume()).toBe(false);
    expect(await failure(client.login({ email: 'a@example.com', password: 'b' }))).toBeInstanceOf(TypeError);
    expect(() => createClient({ apiKey: KEY, session: 'cookie' })).toThrow(TypeError);
  });

  it('is in no error, and not in the client as it is printed', async () => {
    const { client } = await stand(['hangUp', problem(403, 'escalation'), problem(422, 'invalid_field')], {
      maxRetries: 0,
    });
    const errors = [
      await failure(client.request('GET', '/v1/auth/me')),
      await failure(client.request('POST', '/v1/iam/users', newUser)),
      await failure(
        client.request('POST', '/v1/auth/password', {
          body: { old_password: 'old-secret', new_password: 'new-secret' },
        }),
      ),
    ];
    expect(errors.map((error) => error instanceof Error)).toEqual([true, true, true]);
    const printed = [...errors, client]
      .map((each) => inspect(each, { depth: 20, showHidden: true, getters: true }))
      .join('\n');
    expect(printed).not.toContain(KEY.slice(4));
    expect(printed).not.toMatch(/(old|new)-secret/);
    const broken = (): unknown => createClient({ apiKey: `${KEY}\n` });
    expect(broken).toThrow(TypeError);
    expect(broken).not.toThrow(KEY.slice(4));
  });
});
