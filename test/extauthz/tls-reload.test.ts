/** Certificates, keys and client CAs that change on disk while the server runs. */

import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect, type SecureClientSessionOptions } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';

import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { frame } from '../../src/extauthz/grpc/messages.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import type { TlsReload } from '../../src/telemetry/grpc-metrics.ts';
import { type Certificate, makeAuthority } from '../support/certificates.ts';
import { builtinRoutes, littleWorld } from './support/little-world.ts';
import { CHECK_PATH, call } from './support/raw-peer.ts';
import { checkRequest } from './support/requests.ts';
import { TRANSPORTS, type Transport } from './support/transports.ts';

/** The transport of the running tests. */
let transport: Transport['transport'] = 'built-in';

const CHECK = frame(checkRequest({ headers: [] }));
const world = littleWorld();
const authority = makeAuthority();

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Stage {
  readonly server: ExtAuthzServer;
  readonly folder: string;
  write(files: Readonly<Record<string, string>>): void;
  /** Has the server look at its files, if it is not looking already. @returns what it reported so far; poll it */
  looked(): readonly TlsReload[];
  connect(options?: SecureClientSessionOptions): Promise<ClientHttp2Session>;
}

const pairOf = ({ certPem, keyPem }: Certificate) => ({ 'cert.pem': certPem, 'key.pem': keyPem });

async function stage(first: Certificate, clientCaPem?: string): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-tls-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const write: Stage['write'] = (files) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  };
  write(pairOf(first));
  if (clientCaPem !== undefined) write({ 'ca.pem': clientCaPem });
  const reloads: TlsReload[] = [];
  let tick = (): void => undefined;
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: { observe: () => undefined },
    trustedHops: 0,
    forwardCredential: false,
  });
  const server = await startExtAuthz(gate, {
    listen: '127.0.0.1:0',
    transport,
    tls: {
      certFile: join(folder, 'cert.pem'),
      keyFile: join(folder, 'key.pem'),
      clientCaFile: clientCaPem === undefined ? undefined : join(folder, 'ca.pem'),
    },
    onTlsReload: (reload) => reloads.push(reload),
    tlsTicking: (look) => {
      tick = look;
      return () => {
        tick = () => undefined;
      };
    },
  });
  cleanups.push(() => server.drain(100));
  return {
    server,
    folder,
    write,
    looked() {
      tick();
      return reloads;
    },
    async connect(options = {}) {
      const session = connect(`https://${server.address}`, {
        servername: 'localhost',
        checkServerIdentity: () => undefined,
        ca: authority.certPem,
        ...options,
      });
      cleanups.push(() => session.destroy());
      session.on('error', () => undefined);
      await new Promise<void>((resolve, reject) => {
        session.once('connect', () => resolve());
        session.once('error', reject);
      });
      return session;
    },
  };
}

/** Which certificate a connection saw. */
function seenBy(session: ClientHttp2Session): string {
  const { socket } = session;
  if (!(socket instanceof TLSSocket)) {
    // Node hands out a proxy of the socket.
    const certificate: unknown = Reflect.get(socket, 'getPeerCertificate');
    if (typeof certificate !== 'function') throw new Error('no TLS');
    return String(certificate.call(socket).fingerprint256);
  }
  return socket.getPeerCertificate().fingerprint256;
}

const works = async (session: ClientHttp2Session): Promise<boolean> =>
  (await call(session, CHECK_PATH, CHECK)).grpc === '0';

describe.each(TRANSPORTS)('on the transport $transport', (on) => {
  beforeAll(() => {
    transport = on.transport;
  });

  describe('TLS files that change on disk', () => {
    const [before, after] = [authority.issue('localhost'), authority.issue('localhost')];

    test('are in use for new connections, and open connections stay open', async () => {
      const on = await stage(before);
      const old = await on.connect();
      const seen = seenBy(old);
      on.write(pairOf(after));
      await expect
        .poll(() => on.looked())
        .toMatchObject([{ kind: 'taken', notAfter: expect.stringMatching(/^20.*Z$/) }]);
      const fresh = await on.connect();
      expect(seenBy(fresh)).not.toBe(seen);
      expect([await works(old), await works(fresh)]).toEqual([true, true]);
      // The same files are not taken up again: what comes next is the next change.
      on.write(pairOf(before));
      await expect.poll(() => on.looked().length).toBeGreaterThan(1);
      expect(on.looked().map(({ kind }) => kind)).toEqual(['taken', 'taken']);
    });

    test('are seen when a symbolic link above them is swapped, as Kubernetes does', async () => {
      const on = await stage(before);
      const seen = seenBy(await on.connect());
      for (const name of ['cert.pem', 'key.pem']) rmSync(join(on.folder, name));
      const secret = (name: string, pair: Certificate): string => {
        const folder = mkdtempSync(join(on.folder, name));
        for (const [file, text] of Object.entries(pairOf(pair))) writeFileSync(join(folder, file), text);
        return folder;
      };
      symlinkSync(secret('..1', before), join(on.folder, '..data'));
      for (const name of ['cert.pem', 'key.pem']) symlinkSync(join('..data', name), join(on.folder, name));
      expect(on.looked()).toEqual([]);
      expect(seenBy(await on.connect())).toBe(seen);
      symlinkSync(secret('..2', after), join(on.folder, '..next'));
      renameSync(join(on.folder, '..next'), join(on.folder, '..data'));
      await expect.poll(() => on.looked()).toMatchObject([{ kind: 'taken' }]);
      expect(seenBy(await on.connect())).not.toBe(seen);
    });

    test.each<[string, Readonly<Record<string, string>>, RegExp]>([
      ['a key of another certificate', { 'cert.pem': after.certPem }, /key values mismatch/i],
      ['a certificate that is none', { 'cert.pem': 'garbage' }, /cert\.pem is not a PEM certificate/],
      ['a key that is none', { 'key.pem': 'garbage' }, /./],
      ['an empty file', { 'cert.pem': '' }, /cert\.pem is not a PEM certificate/],
    ])(
      'and are bad (%s) are reported once, and those before stay in use until better ones come',
      async (_name, files, problem) => {
        const on = await stage(before);
        const seen = seenBy(await on.connect());
        on.write(files);
        await expect
          .poll(() => on.looked())
          .toMatchObject([{ kind: 'refused', problem: expect.stringMatching(problem) }]);
        expect(JSON.stringify(on.looked())).not.toContain('PRIVATE');
        const session = await on.connect();
        expect([seenBy(session), await works(session)]).toEqual([seen, true]);
        on.write(pairOf(after));
        await expect.poll(() => on.looked().map(({ kind }) => kind)).toEqual(['refused', 'taken']);
        expect(seenBy(await on.connect())).not.toBe(seen);
      },
    );

    test('while the server reads them are never taken for a pair that does not match', async () => {
      const on = await stage(before);
      for (let change = 1; change <= 60; change++) {
        on.looked();
        for (let turn = 0; turn < change % 6; turn++) await setImmediate();
        on.write(pairOf(change % 2 === 0 ? before : after));
        await expect.poll(() => on.looked().at(change - 1), { interval: 1 }).toMatchObject({ kind: 'taken' });
      }
    });

    test('and cannot be read are reported once', async () => {
      const on = await stage(before);
      rmSync(join(on.folder, 'key.pem'));
      const problem = `${join(on.folder, 'key.pem')} cannot be read`;
      await expect.poll(() => on.looked()).toEqual([{ kind: 'refused', problem }]);
      expect(await works(await on.connect())).toBe(true);
    });

    test('with another client CA hold new connections to it, also one that resumes a session of before', async () => {
      const [ours, theirs] = [authority.issue('envoy'), makeAuthority()];
      const on = await stage(before, authority.certPem);
      const envoy = (certificate: Certificate): SecureClientSessionOptions => ({
        cert: certificate.certPem,
        key: certificate.keyPem,
      });
      const old = await on.connect(envoy(ours));
      const tickets: Buffer[] = [];
      Reflect.get(old.socket, 'on').call(old.socket, 'session', (ticket: Buffer) => tickets.push(ticket));
      expect(await works(old)).toBe(true);
      await expect.poll(() => tickets.length).toBeGreaterThan(0);
      on.write({ 'ca.pem': theirs.certPem });
      await expect.poll(() => on.looked()).toMatchObject([{ kind: 'taken' }]);
      const [session] = tickets;
      const isServed = async (options: SecureClientSessionOptions): Promise<boolean> => {
        try {
          return await works(await on.connect(options));
        } catch {
          return false;
        }
      };
      expect(await isServed(envoy(ours))).toBe(false);
      expect(await isServed({ ...envoy(ours), ...(session === undefined ? {} : { session }) })).toBe(false);
      expect(await isServed({})).toBe(false);
      expect(await isServed(envoy(theirs.issue('envoy')))).toBe(true);
      expect(await works(old)).toBe(true);
    });

    test('with an invalid client CA are rejected, and the earlier ones stay in force', async () => {
      const on = await stage(before, authority.certPem);
      on.write({ 'ca.pem': 'garbage' });
      await expect.poll(() => on.looked()).toMatchObject([{ kind: 'refused' }]);
      const ours = authority.issue('envoy');
      expect(await works(await on.connect({ cert: ours.certPem, key: ours.keyPem }))).toBe(true);
    });
  });
});
