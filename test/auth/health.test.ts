import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type HealthServer, type ReadinessParts, readiness, startHealthServer } from '../../src/http/health.ts';
import { send } from '../support/http.ts';

const able: ReadinessParts = {
  draining: () => false,
  feedAgeMs: () => 20,
  maxStalenessMs: 300_000,
  signingKeysReady: () => true,
};

const servers: HealthServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(parts: Partial<ReadinessParts>, metrics: () => Promise<string> = async () => ''): Promise<string> {
  const ready = readiness({ ...able, ...parts });
  const server = await startHealthServer({
    listen: { host: '127.0.0.1', port: 0 },
    ready,
    warnings: () => [],
    metrics,
  });
  servers.push(server);
  return `http://127.0.0.1:${server.address.port}`;
}

describe('/readyz', () => {
  const check = (name: string, parts: Partial<ReadinessParts>, status: number, reason?: RegExp): void => {
    test(name, async () => {
      const answer = await send(await serve(parts), { path: '/readyz' });
      expect(answer.status).toBe(status);
      const body: unknown = JSON.parse(answer.body);
      expect(body).toEqual(
        reason === undefined ? { status: 'ready' } : { status: 'not ready', reasons: [expect.stringMatching(reason)] },
      );
    });
  };
  check('is 200 while all that deciding needs is there', {}, 200);
  check(
    'says that the feed is older than it may be',
    { feedAgeMs: () => 300_000 },
    503,
    /^change feed: last read 300 s ago/,
  );
  check(
    'says that the feed was never read',
    { feedAgeMs: () => Number.POSITIVE_INFINITY },
    503,
    /^change feed: not read yet$/,
  );
  check('does not take an age that is no number for fresh', { feedAgeMs: () => Number.NaN }, 503, /^change feed/);
  check('says that no signing key is loaded', { signingKeysReady: () => false }, 503, /^signing keys/);
  check('turns at once when draining begins', { draining: () => true }, 503, /^draining/);
  check(
    'is 503 when a check itself breaks',
    {
      feedAgeMs: () => {
        throw new Error('bug');
      },
    },
    503,
    /could not be made/,
  );
});

describe('the health listener', () => {
  test('says that the process lives while it is not ready', async () => {
    const answer = await send(await serve({ draining: () => true }), { path: '/healthz' });
    expect([answer.status, answer.body]).toEqual([200, '{"status":"ok"}\n']);
  });

  test('shows the metrics as the text that it is given', async () => {
    const answer = await send(await serve({}, async () => 'postern_up 1\n'), { path: '/metrics' });
    expect(answer.body).toBe('postern_up 1\n');
    expect(answer.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
  });

  test('answers 503 when the metrics cannot be made, and lives on', async () => {
    const url = await serve({}, () => Promise.reject(new Error('secret-internal')));
    const answer = await send(url, { path: '/metrics' });
    expect(answer.status).toBe(503);
    expect(answer.body).not.toContain('secret-internal');
    expect((await send(url, { path: '/healthz' })).status).toBe(200);
  });

  test('knows no other path and no other method', async () => {
    const url = await serve({});
    expect((await send(url, { path: '/v1/iam/users' })).status).toBe(404);
    expect((await send(url, { path: '/healthz', method: 'POST', body: 'x' })).status).toBe(405);
    expect((await send(url, { path: '/readyz?verbose=1' })).status).toBe(200);
    expect((await send(url, { path: '/readyz', method: 'HEAD' })).body).toBe('');
  });

  test('closes though a client holds its connection open', async () => {
    const url = await serve({});
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    await servers.pop()?.close();
    await closed;
  });

  test('reports an address that it cannot listen on', async () => {
    const url = await serve({});
    const listen = { host: '127.0.0.1', port: Number(new URL(url).port) };
    await expect(
      startHealthServer({ listen, ready: () => [], warnings: () => [], metrics: async () => '' }),
    ).rejects.toThrow(/EADDRINUSE/);
  });
});
