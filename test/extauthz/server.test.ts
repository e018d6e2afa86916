import { once } from 'node:events';
import { linkSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, status } from '@grpc/grpc-js';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type CheckHandler, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { type ExtAuthzOptions, type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { makeAuthority } from '../support/certificates.ts';
import { connectTo, statusOf, type TestClient } from './support/client.ts';
import { readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld, OWNED_KEY_ID } from './support/little-world.ts';
import { checkRequest } from './support/requests.ts';
import { TRANSPORTS, type Transport } from './support/transports.ts';

/** The transport of the running tests. */
let transport: Transport['transport'] = 'built-in';

const AUTHORIZATION = 'envoy.service.auth.v3.Authorization';
const [SERVING, NOT_SERVING, SERVICE_UNKNOWN] = [1, 2, 3];

const world = littleWorld();
const gate = createCheckHandler({
  routes: builtinRoutes(),
  resolver: world.resolver,
  observer: { observe: () => undefined },
  trustedHops: 0,
  forwardCredential: false,
});
const CHAT = checkRequest({
  headers: [
    ['authorization', `Bearer ${world.ownedKey}`],
    ['content-type', 'application/json'],
  ],
  body: '{"model":"m"}',
});

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(options: Partial<ExtAuthzOptions> = {}, answer: CheckHandler = gate): Promise<ExtAuthzServer> {
  const server = await startExtAuthz(answer, { listen: '127.0.0.1:0', transport, ...options });
  cleanups.push(() => server.drain(100));
  return server;
}

function client(address: string, ...channel: Parameters<typeof credentials.createSsl> | []): TestClient {
  const connected = connectTo(address, channel.length === 0 ? undefined : credentials.createSsl(...channel));
  cleanups.push(() => connected.close());
  return connected;
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'postern-extauthz-'));
  cleanups.push(() => rmSync(path, { recursive: true }));
  return path;
}

async function decides(envoy: TestClient): Promise<void> {
  expect(readAnswer(await envoy.check(CHAT)).headers['x-postern-subject']).toBe(OWNED_KEY_ID);
  expect(readAnswer(await envoy.check(checkRequest({ headers: [] }))).status).toBe(401);
}

describe.each(TRANSPORTS)('on the transport $transport', (on) => {
  beforeAll(() => {
    transport = on.transport;
  });

  describe('the call is OK for any request bytes', () => {
    test('an allow and a denial', async () => {
      await decides(client((await serve()).address));
    });

    test.each<[string, Buffer, string]>([
      ['no bytes', Buffer.alloc(0), 'malformed_request'],
      ['bytes that are no message', Buffer.from('garbage'), 'malformed_request'],
      ['a cut message', CHAT.subarray(0, 100), 'malformed_request'],
      [
        'a header of 10 MB',
        checkRequest({ headers: [['authorization', `Bearer ${'a'.repeat(10_000_000)}`]] }),
        'invalid_credential',
      ],
    ])('%s is a denial', async (_name, request, code) => {
      const answer = readAnswer(await client((await serve()).address).check(request));
      expect(answer.code).not.toBe(0);
      expect(answer.body['code']).toBe(code);
    });

    test('many checks at once on one connection each get their own answer', async () => {
      const envoy = client((await serve()).address);
      const answers = await Promise.all(
        Array.from({ length: 200 }, async (_, i) => {
          const answer = readAnswer(await envoy.check(i % 2 === 0 ? CHAT : checkRequest({ path: `/v1/unknown/${i}` })));
          return answer.status ?? 200;
        }),
      );
      expect(answers.every((code, i) => code === (i % 2 === 0 ? 200 : 403))).toBe(true);
    });
  });

  describe('where it listens', () => {
    test('TCP, at an address in use: one sentence', async () => {
      const { address } = await serve();
      await expect(serve({ listen: address })).rejects.toThrow(`cannot listen on ${address}: listen EADDRINUSE`);
    });

    test('a Unix socket, for owner and group only', async () => {
      const path = join(directory(), 'authz.sock');
      const { address } = await serve({ listen: `unix:${path}` });
      expect(statSync(path).mode & 0o777).toBe(0o660);
      await decides(client(address));
    });

    test('over the socket file that a killed server left behind', async () => {
      const path = join(directory(), 'authz.sock');
      // A server that is closed removes its file; one more link to it stays, as after a kill.
      const before = createServer().listen(path);
      await once(before, 'listening');
      linkSync(path, `${path}.kept`);
      before.close();
      await once(before, 'close');
      linkSync(`${path}.kept`, path);
      await decides(client((await serve({ listen: `unix:${path}` })).address));
    });

    test('not over a socket that is in use, nor over a file that is none', async () => {
      const path = join(directory(), 'authz.sock');
      await serve({ listen: `unix:${path}` });
      await expect(serve({ listen: `unix:${path}` })).rejects.toThrow('another server listens');
      const file = join(directory(), 'notes.txt');
      writeFileSync(file, 'keep me');
      await expect(serve({ listen: `unix:${file}` })).rejects.toThrow('is not a socket');
      expect(statSync(file).size).toBe(7);
    });
  });

  describe('TLS', () => {
    const authority = makeAuthority();
    const server = authority.issue('localhost');
    const ca = Buffer.from(authority.certPem);

    function files(withClientCa: boolean): NonNullable<ExtAuthzOptions['tls']> {
      const path = directory();
      const write = (name: string, content: string): string => {
        writeFileSync(join(path, name), content);
        return join(path, name);
      };
      return {
        certFile: write('cert.pem', server.certPem),
        keyFile: write('key.pem', server.keyPem),
        clientCaFile: withClientCa ? write('ca.pem', authority.certPem) : undefined,
      };
    }

    test('serves every client that trusts its authority', async () => {
      const { address } = await serve({ tls: files(false) });
      await decides(client(address, ca));
      await expect(client(address).check(CHAT)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    });

    test('with a client authority, serves only its clients', async () => {
      const { address } = await serve({ tls: files(true) });
      const own = authority.issue('envoy');
      await decides(client(address, ca, Buffer.from(own.keyPem), Buffer.from(own.certPem)));
      await expect(client(address, ca).check(CHAT)).rejects.toMatchObject({ code: status.UNAVAILABLE });
      const foreign = makeAuthority().issue('envoy');
      const stranger = client(address, ca, Buffer.from(foreign.keyPem), Buffer.from(foreign.certPem));
      await expect(stranger.check(CHAT)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    });

    test('files that are missing or no certificates stop the start', async () => {
      const good = files(false);
      await expect(serve({ tls: { ...good, keyFile: '/nowhere/key.pem' } })).rejects.toThrow(
        '/nowhere/key.pem cannot be read',
      );
      await expect(serve({ tls: { ...good, keyFile: good.certFile } })).rejects.toThrow('cannot listen on');
    });
  });

  describe('health', () => {
    test('is serving only while ready, for the server and the service', async () => {
      const server = await serve();
      const envoy = client(server.address);
      const both = (): Promise<number[]> => Promise.all(['', AUTHORIZATION].map((service) => envoy.health(service)));
      expect(await both()).toEqual([NOT_SERVING, NOT_SERVING]);
      server.setReady(true);
      expect(await both()).toEqual([SERVING, SERVING]);
      server.setReady(false);
      expect(await both()).toEqual([NOT_SERVING, NOT_SERVING]);
    });

    test('does not know other services, nor read what is no request', async () => {
      const envoy = client((await serve()).address);
      await expect(envoy.health('other.Service')).rejects.toMatchObject({ code: status.NOT_FOUND });
      await expect(envoy.health(Buffer.from([0x0a, 0x7f]))).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
    });

    test('reports every change to a watcher, and the end', async () => {
      const server = await serve();
      const watch = client(server.address).watch(AUTHORIZATION);
      const next = async (): Promise<number> => statusOf((await once(watch, 'data'))[0]);
      expect(await next()).toBe(NOT_SERVING);
      server.setReady(true);
      expect(await next()).toBe(SERVING);
      const last = next();
      const ended = once(watch, 'end');
      const drained = server.drain(10_000);
      expect(await last).toBe(NOT_SERVING);
      await ended;
      await drained;
    });

    test('answers SERVICE_UNKNOWN to a watcher of another service', async () => {
      const watch = client((await serve()).address).watch('other.Service');
      expect(statusOf((await once(watch, 'data'))[0])).toBe(SERVICE_UNKNOWN);
      watch.on('error', () => undefined);
      watch.cancel();
    });
  });

  describe('draining', () => {
    /** A gate whose checks are answered when the test says so. */
    function held(): { gate: CheckHandler; arrived: Promise<void>; release: () => void } {
      const arrived = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      return {
        gate: async (bytes) => {
          arrived.resolve();
          await released.promise;
          return gate(bytes);
        },
        arrived: arrived.promise,
        release: released.resolve,
      };
    }

    test('answers running checks, accepts no new ones, and then closes', async () => {
      const slow = held();
      const server = await serve({}, slow.gate);
      server.setReady(true);
      const envoy = client(server.address);
      const running = envoy.check(CHAT);
      await slow.arrived;
      const drained = server.drain(10_000);
      server.setReady(true);
      await expect(client(server.address).check(CHAT)).rejects.toMatchObject({ code: status.UNAVAILABLE });
      slow.release();
      expect(readAnswer(await running).code).toBe(0);
      await drained;
      await expect(envoy.check(CHAT)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    });

    test.each(['tcp', 'unix'])('ends after the grace, whatever still runs (%s)', async (kind) => {
      const stuck = held();
      const server = await serve(
        { listen: kind === 'tcp' ? '127.0.0.1:0' : `unix:${join(directory(), 'authz.sock')}` },
        stuck.gate,
      );
      // The call of grpc-js ends at its deadline, because its server cuts no stream.
      const envoy = connectTo(server.address, undefined, 5_000);
      cleanups.push(() => envoy.close());
      const cut = expect(envoy.check(CHAT)).rejects.toBeDefined();
      await stuck.arrived;
      await server.drain(10);
      await cut;
    });
  });
});
