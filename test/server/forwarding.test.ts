/** A running server reports proxies that the configuration does not name. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { send } from '../support/http.ts';
import { freeAddress } from '../support/ports.ts';
import { ADMIN, SECRET_KEY } from './support/client.ts';
import { logLines, openStand, type Stand } from './support/postern.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stand: Stand;
let database: FreshDatabase;
beforeAll(async () => {
  stand = await openStand();
  database = await freshDatabase();
});
afterAll(async () => {
  await stand?.close();
  await database?.close();
});

it('serve warns in its log and on /readyz that no proxy is trusted, and that an untrusted peer has forwarded', async () => {
  const [, port = ''] = (await freeAddress()).split(':');
  const server = await stand.serveApi({
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_HTTP_LISTEN: `0.0.0.0:${port}`,
  });
  const warnings = async (): Promise<unknown> => {
    const { status, body } = await send(`http://${server.admin}`, { path: '/readyz' });
    expect(status).toBe(200);
    return JSON.parse(body).warnings;
  };
  const empty = expect.stringContaining('http.trusted-proxies is empty');
  expect(await warnings()).toEqual([empty]);
  for (let i = 0; i < 3; i++) {
    await send(`http://127.0.0.1:${port}`, { path: '/v1/auth/me', headers: { 'x-forwarded-for': '203.0.113.9' } });
  }
  await expect.poll(warnings).toEqual([empty, expect.stringContaining('came from 127.0.0.1')]);
  const { stdout } = await server.stop();
  const logged = logLines(stdout).filter(
    (line) => line['part'] === 'http' && String(line['msg']).startsWith('http.trusted-proxies'),
  );
  expect(logged.map((line) => line['msg'])).toEqual([
    expect.stringContaining('http.trusted-proxies is empty'),
    expect.stringContaining('came from 127.0.0.1'),
  ]);
});
