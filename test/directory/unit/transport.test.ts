/** Servers that misbehave. The tests keep the bytes that they receive, which must not contain a credential. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import type { LdapConnection } from '../../../src/directory/connection.ts';
import { Deadline } from '../../../src/directory/deadline.ts';
import { openDirectories } from '../../../src/directory/directories.ts';
import { serversOf } from '../../../src/directory/failover.ts';
import { Fault } from '../../../src/domain/errors.ts';
import { settingsWith, urlOf } from './fake-settings.ts';

const PASSWORD = 'the person’s password';
const SERVICE_PASSWORD = 'the service account’s';
const AGREED = Buffer.from('300c02010178070a010004000400', 'hex');
const REFUSED = Buffer.from('300c02010178070a010204000400', 'hex');
const BOUND = Buffer.from('300c02010261070a010004000400', 'hex');

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Starts a server that answers each received piece with the function. */
async function listening(answer: (heard: Buffer, socket: Socket) => void) {
  const heard: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', (data: Buffer) => {
      heard.push(data);
      answer(data, socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, text: () => Buffer.concat(heard).toString('utf8'), connections: () => sockets.size };
}

const logIn = (port: number, changes: Parameters<typeof settingsWith>[0] = {}) =>
  openDirectories([settingsWith({ urls: [urlOf(`ldap://127.0.0.1:${port}`)], ...changes })]).authenticate(
    'alice',
    PASSWORD,
  );

const expectNoCredential = (text: string): void => {
  expect(text).not.toContain(PASSWORD);
  expect(text).not.toContain(SERVICE_PASSWORD);
};

it.each([
  ['is refused', (_: Buffer, socket: Socket) => socket.write(REFUSED), /refused it with code 2/],
  [
    'is answered with something else',
    (_: Buffer, socket: Socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    /something else/,
  ],
  [
    'is agreed to, and the connection ends',
    (_: Buffer, socket: Socket) => socket.end(AGREED),
    /TLS|socket|disconnected|closed/i,
  ],
  [
    'is agreed to by a server without TLS',
    (heard: Buffer, socket: Socket) => socket.write(heard[0] === 0x30 ? AGREED : 'no TLS'),
    /./,
  ],
  ['is not answered, and the connection ends', (_: Buffer, socket: Socket) => socket.end(), /closed/],
  [
    'is agreed to with a bind’s success slipped in behind',
    (_: Buffer, socket: Socket) => socket.write(Buffer.concat([AGREED, BOUND])),
    /more than its answer/,
  ],
])('if StartTLS %s, the client sends no credential, and the login is a fault', async (_, answer, why) => {
  const server = await listening(answer);
  const login = logIn(server.port, { startTls: true });
  await expect(login).rejects.toThrow(Fault);
  await expect(login).rejects.toThrow(why);
  expectNoCredential(server.text());
});

it('if a server on ldaps has no TLS, the client sends no credential, and the login is a fault', async () => {
  const server = await listening((_, socket) => socket.write(BOUND));
  await expect(logIn(0, { urls: [urlOf(`ldaps://127.0.0.1:${server.port}`)] })).rejects.toThrow(Fault);
  expectNoCredential(server.text());
});

it.each([
  ['ldap', false],
  ['ldap', true],
  ['ldaps', false],
] as const)(
  'a silent server is a fault at the time set, by %s with StartTLS %s, and its connection is cut',
  async (scheme, startTls) => {
    const server = await listening(() => undefined);
    const urls = [urlOf(`${scheme}://127.0.0.1:${server.port}`)];
    await expect(logIn(0, { urls, startTls, timeoutMs: 150 })).rejects.toThrow(
      'the directory did not answer within 150 ms',
    );
    await expect.poll(server.connections).toBe(0);
  },
);

it('the fault of a silent server names the configured timeout, also if part of it has passed before the request', async () => {
  const server = await listening(() => undefined);
  const servers = serversOf(settingsWith({ urls: [urlOf(`ldap://127.0.0.1:${server.port}`)] }), undefined);
  using deadline = new Deadline(1000, 800);
  // Until what is left is less by more than a timer's millisecond.
  await expect.poll(() => deadline.remainingMs(), { interval: 1 }).toBeLessThan(190);
  const bind = async (connection: LdapConnection): Promise<void> =>
    void (await connection.bind('cn=service', SERVICE_PASSWORD));
  await expect(servers.open(deadline, bind)).rejects.toThrow('the directory did not answer within 1000 ms');
});

it('a connection that ends before the bind is not made again in clear', async () => {
  let connections = 0;
  const server = await listening((_, socket) => {
    connections++;
    socket.destroy();
  });
  await expect(logIn(server.port)).rejects.toThrow(Fault);
  expect(connections).toBe(1);
});

it('a server that answers without end is cut off', async () => {
  const piece = Buffer.concat([Buffer.from('3084ffffff00', 'hex'), Buffer.alloc(1024 * 1024)]);
  const server = await listening((_, socket) => {
    const go = (): void => {
      while (!socket.destroyed && socket.write(piece));
      socket.once('drain', go);
    };
    go();
  });
  await expect(logIn(server.port, { timeoutMs: 30_000 })).rejects.toThrow(Fault);
}, 20_000);

it('an empty name or password opens no connection', async () => {
  const server = await listening(() => undefined);
  const directories = openDirectories([settingsWith({ urls: [urlOf(`ldap://127.0.0.1:${server.port}`)] })]);
  expect(await directories.authenticate('alice', '')).toEqual({ kind: 'refused', reason: 'empty_password' });
  expect(await directories.authenticate('', PASSWORD)).toEqual({ kind: 'refused', reason: 'invalid_username' });
  expect([server.connections(), server.text()]).toEqual([0, '']);
});

it('the connections to one directory are bounded; further logins wait, and are faults beyond the bound on waiting ones', async () => {
  const open = new Set<Socket>();
  let most = 0;
  // Cut in pairs: with fewer at a time than two none would end.
  const server = await listening((_, socket) => {
    open.add(socket);
    most = Math.max(most, open.size);
    if (open.size < 2) return;
    for (const one of open) one.destroy();
    open.clear();
  });
  const urls = [urlOf(`ldap://127.0.0.1:${server.port}`)];
  const directories = openDirectories([settingsWith({ urls, timeoutMs: 20_000 })], {
    maxConnections: 2,
    maxWaiting: 2,
  });
  const logins = await Promise.allSettled(Array.from({ length: 8 }, () => directories.authenticate('alice', PASSWORD)));
  const reasons = logins.map((login) => (login.status === 'rejected' ? String(login.reason) : 'answered'));
  expect(reasons.filter((reason) => reason.includes('too many'))).toHaveLength(4);
  expect(most).toBe(2);
});

it('a step of a test that fails says what to change', async () => {
  const server = await listening((_, socket) => socket.write(REFUSED));
  const directories = openDirectories([
    settingsWith({ urls: [urlOf(`ldap://127.0.0.1:${server.port}`)], startTls: true }),
  ]);
  expect(await directories.test({ username: 'alice', password: PASSWORD })).toMatchObject([
    { step: 'connect', ok: true },
    { step: 'tls', ok: false, advice: expect.stringContaining('ldap.start-tls') },
  ]);
  expect(await directories.test({ username: 'alice', directory: 'other' })).toMatchObject([
    { ok: false, advice: 'Configured are: ldap.' },
  ]);
});

it('a remote server without TLS, or without a service account, causes a warning', () => {
  const remote = openDirectories([
    settingsWith({ urls: [urlOf('ldap://dir.example:389'), urlOf('ldaps://dir.example:636')] }),
  ]);
  expect(remote.problems).toEqual([expect.stringContaining('ldap://dir.example:389 in clear')]);
  const safe = [{ startTls: true, urls: [urlOf('ldap://dir.example:389')] }, { urls: [urlOf('ldap://localhost:389')] }];
  for (const changes of safe) expect(openDirectories([settingsWith(changes)]).problems).toEqual([]);
  expect(openDirectories([settingsWith({ serviceAccount: undefined })]).problems).toEqual([
    expect.stringContaining('no service account'),
  ]);
});
