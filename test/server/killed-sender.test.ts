/** The process that sends the events of webhooks is killed while it sends. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { ADMIN, done, login, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openStand, type Server, type Stand } from './support/postern.ts';
import { isRunning, processesOf } from './support/processes.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

const byText = (a: string, b: string): number => (a < b ? -1 : 1);

let stand: Stand;
let fresh: FreshDatabase;
let receiver: Receiver;
let server: Server;
beforeAll(async () => {
  [stand, fresh, receiver] = await Promise.all([openStand(), freshDatabase(), startReceiver()]);
  server = await stand.serve({
    POSTERN_DATABASE_URL: fresh.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_WEBHOOKS_ALLOWED_HOSTS: JSON.stringify([receiver.host]),
  });
});
afterAll(async () => {
  await stand?.close();
  await fresh?.close();
  await receiver?.close();
});

it('each event of a committed change arrives at least once, and none of another change', async () => {
  const token = await login(server.http);
  const body = { url: `http://${receiver.host}/events`, events: ['audit.role.*'] };
  await done(server.http, 'POST', '/v1/iam/webhooks', { token, body });
  // The first attempt hangs, so the kill comes while it runs.
  receiver.answer('/events', () => undefined);
  const create = (name: string) =>
    done(server.http, 'POST', '/v1/iam/roles', { token, body: { name, permissions: ['chat:read'] } });
  for (let n = 0; n < 5; n++) await create(`role-${n}`);
  await receiver.until('/events', 1);
  // Changes are under way as well, some of which are not committed.
  const torn = Promise.allSettled(Array.from({ length: 20 }, (_, n) => create(`torn-${n}`)));
  const [api] = await processesOf(server.pid, 'api');
  const killed = api ?? expect.fail('no API process');
  process.kill(killed, 'SIGKILL');
  await eventually('the process is gone', async () => !(await isRunning(killed)));
  await torn;
  receiver.answer('/events', (response) => void response.writeHead(204).end());
  // Claims of the killed process end after 30 s, which pass here at once.
  await fresh.db.query({ text: `update webhook_deliveries set next_attempt_at = now() where state = 'waiting'` });
  const created = async (): Promise<readonly string[]> =>
    (await fresh.db.query({ text: `select target_id from audit_log where action = 'role.create' order by 1` })).map(
      (row) => String(row['target_id']),
    );
  const arrived = (): readonly string[] =>
    [...new Set(receiver.received.map((one) => String(JSON.parse(one.body).data.target.id)))].toSorted(byText);
  await eventually('everything was delivered', async () => {
    const [row] = await fresh.db.query({
      text: `select (select count(*) from webhook_deliveries where state = 'delivered') = (select count(*) from audit_log where action = 'role.create') as done`,
    });
    return row?.['done'] === true;
  });
  expect(arrived()).toEqual((await created()).toSorted(byText));
  expect(arrived()).toEqual(expect.arrayContaining(['role-0', 'role-4']));
});
