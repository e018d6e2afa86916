/** The bytes that Postern sends to a real slapd with wrong TLS contain no credential and no name. */

import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { Directories } from '../../src/directory/model.ts';
import { Fault } from '../../src/domain/errors.ts';
import { createDirectoryService } from '../../src/iam/auth/directory-service.ts';
import { type Stand, startStand } from '../auth/stand.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { makeAuthority, makeCertificates } from './servers/certificates.ts';
import { findParts } from './servers/packages.ts';
import { PASSWORD, SERVICE_PASSWORD } from './servers/people.ts';
import { makeFolder, removeFolder } from './servers/processes.ts';
import { type Recorder, type RecorderOptions, startRecorder } from './servers/recorder.ts';
import type { DirectoryServer } from './servers/server.ts';
import { startSlapd } from './servers/slapd.ts';
import { directoryUrl, settingsFor } from './settings.ts';

const START_LIMIT_MS = 120_000;
/** The request of StartTLS is clear by its nature; the rest of a connection begins with a TLS handshake record. */
const START_TLS_NAME = '1.3.6.1.4.1.1466.20037';
const HANDSHAKE = 0x16;
/** The texts that must not be readable on the network: passwords and usernames. */
const SECRETS = [PASSWORD, SERVICE_PASSWORD, 'alice', 'cn=postern'];

const missing = (await findParts(['openldap'])).get('openldap');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

describe.skipIf(missing !== undefined)(`TLS to a directory${missing === undefined ? '' : `: ${missing}`}`, () => {
  let folder: string;
  let database: FreshDatabase;
  let good: DirectoryServer;
  let expired: DirectoryServer;
  let otherName: DirectoryServer;
  let refusing: DirectoryServer;

  beforeAll(async () => {
    folder = await makeFolder('transport');
    database = await freshDatabase();
    const authority = await makeAuthority(folder);
    const [valid, old, elsewhere] = await Promise.all([
      makeCertificates(folder, {}, authority),
      makeCertificates(folder, { expired: true }, authority),
      makeCertificates(folder, { names: ['DNS:ldap.other.example'] }, authority),
    ]);
    [good, expired, otherName, refusing] = await Promise.all([
      startSlapd({ small: true, certificates: valid }),
      startSlapd({ small: true, certificates: old }),
      startSlapd({ small: true, certificates: elsewhere }),
      startSlapd({ small: true, certificates: valid, withoutTls: true }),
    ]);
  }, START_LIMIT_MS);
  afterAll(async () => {
    await Promise.all([good, expired, otherName, refusing].map((server) => server?.stop()));
    await database?.close();
    await removeFolder(folder);
  }, START_LIMIT_MS);

  interface Way {
    readonly scheme: 'ldap' | 'ldaps';
    readonly startTls: boolean;
    /** `127.0.0.1` or `localhost`: what the certificate has to name. */
    readonly host?: string;
    /** Other certificates to trust than those of the server's authority. */
    readonly ca?: string;
  }
  const STARTTLS: Way = { scheme: 'ldap', startTls: true };
  const LDAPS: Way = { scheme: 'ldaps', startTls: false };

  const through = (server: DirectoryServer, recorder: Recorder, way: Way, pattern: boolean): Directories => {
    const url = directoryUrl(`${way.scheme}://${way.host ?? 'localhost'}:${recorder.port}`);
    return openDirectories([
      settingsFor(server, {
        urls: [url],
        startTls: way.startTls,
        ...(way.ca === undefined ? {} : { ca: way.ca }),
        ...(pattern ? { userDnPattern: `uid={0},${server.people}` } : {}),
      }),
    ]);
  };

  async function recording(
    server: DirectoryServer,
    way: Way,
    options: RecorderOptions,
    use: (recorder: Recorder, pattern: boolean) => Promise<void>,
  ): Promise<void> {
    const port = way.scheme === 'ldaps' ? Number(new URL(server.secureUrl).port) : server.port;
    for (const pattern of [false, true]) {
      const recorder = await startRecorder(port, options);
      try {
        await use(recorder, pattern);
      } finally {
        await recorder.close();
      }
    }
  }

  /** Outside it is a 503, inside a Fault, and on the wire nothing. */
  async function expectNothingLeaves(
    server: DirectoryServer,
    way: Way,
    why: RegExp,
    options: RecorderOptions = {},
  ): Promise<void> {
    await recording(server, way, options, async (recorder, pattern) => {
      const directories = through(server, recorder, way, pattern);
      const refused = directories.authenticate('alice', PASSWORD);
      await expect(refused).rejects.toBeInstanceOf(Fault);
      await expect(refused).rejects.toThrow(why);
      await expect(
        directories.lookup(server.kind, 'entryuuid:3d5a8b4e-0000-4000-8000-000000000000'),
      ).rejects.toBeInstanceOf(Fault);
      await using stand = await standOn(directories);
      const reply = await stand.post('/v1/auth/login', { auth_type: 'ldap', username: 'alice', password: PASSWORD });
      expect([reply.status, reply.json['code']]).toEqual([503, 'unavailable']);
      expect(recorder.connections()).toBeGreaterThan(0);
      expectNoSecret(recorder.sent());
    });
  }

  async function standOn(directories: Directories): Promise<Stand & AsyncDisposable> {
    const stand = await startStand(database.url, {
      directory: createDirectoryService({ directories, names: ['openldap'] }),
    });
    return Object.assign(stand, { [Symbol.asyncDispose]: () => stand.close() });
  }

  test('the recorder sees bytes that are in clear', async () => {
    await recording(good, { scheme: 'ldap', startTls: false }, {}, async (recorder, pattern) => {
      const directories = through(good, recorder, { scheme: 'ldap', startTls: false }, pattern);
      expect((await directories.authenticate('alice', PASSWORD)).kind).toBe('proved');
      expect(recorder.sent().includes(PASSWORD)).toBe(true);
    });
  });

  test('a connection ends with an UnbindRequest', async () => {
    await recording(good, { scheme: 'ldap', startTls: false }, {}, async (recorder, pattern) => {
      await through(good, recorder, { scheme: 'ldap', startTls: false }, pattern).authenticate('alice', PASSWORD);
      await expect.poll(() => recorder.open()).toBe(0);
      // LDAPMessage with an UnbindRequest (RFC 4511, section 4.3).
      expect(recorder.sent().subarray(-10).toString('hex')).toMatch(/^30080204[0-7][0-9a-f]{7}4200$/);
    });
  });

  test.each([
    ['StartTLS', STARTTLS],
    ['StartTLS to an address', { ...STARTTLS, host: '127.0.0.1' }],
    ['ldaps', LDAPS],
    ['ldaps to an address', { ...LDAPS, host: '127.0.0.1' }],
  ])('%s: logs in, and nothing is in clear', async (_, way) => {
    await recording(good, way, {}, async (recorder, pattern) => {
      expect((await through(good, recorder, way, pattern).authenticate('alice', PASSWORD)).kind).toBe('proved');
      expectNoSecret(recorder.sent());
    });
  });

  test('StartTLS refused: no bind', async () => {
    await expectNothingLeaves(refusing, STARTTLS, /refused it with code/);
  });

  test.each([STARTTLS, LDAPS])('the certificate of another name ($scheme): no bind', async (way) => {
    await expectNothingLeaves(otherName, way, /altnames/);
    await expectNothingLeaves(otherName, { ...way, host: '127.0.0.1' }, /altnames|cert's list/);
  });

  test.each([STARTTLS, LDAPS])('an expired certificate ($scheme): no bind', async (way) => {
    await expectNothingLeaves(expired, way, /expired/);
  });

  test.each([STARTTLS, LDAPS])('an authority that is not trusted ($scheme): no bind', async (way) => {
    const strangers = await makeFolder('strangers');
    try {
      const { ca } = await makeAuthority(strangers);
      await expectNothingLeaves(good, { ...way, ca: await readFile(ca, 'utf8') }, /certificate/);
    } finally {
      await removeFolder(strangers);
    }
  });

  test('dropped after StartTLS: no bind, and no second try in clear', async () => {
    await expectNothingLeaves(good, STARTTLS, /closed|ended|reset/, { answer: () => null });
    await expectNothingLeaves(good, STARTTLS, /closed|ended|reset|disconnected/, {
      answer: (bytes, nth) => (nth === 1 ? bytes : null),
    });
  });

  test('an answer slipped in before TLS began is not taken for one of the server', async () => {
    // Success of a bind with message id 2: what the client would wait for next.
    const bound = Buffer.from('300c02010261070a010004000400', 'hex');
    await expectNothingLeaves(good, STARTTLS, /more than its answer/, {
      answer: (bytes, nth) => (nth === 1 ? Buffer.concat([bytes, bound]) : bytes),
    });
  });

  test('a server that speaks no TLS where TLS is expected: no bind', async () => {
    await recording(refusing, STARTTLS, {}, async (recorder, pattern) => {
      await expect(through(refusing, recorder, LDAPS, pattern).authenticate('alice', PASSWORD)).rejects.toBeInstanceOf(
        Fault,
      );
      expectNoSecret(recorder.sent());
    });
  });
});

function expectNoSecret(sent: Buffer): void {
  for (const secret of SECRETS) expect([secret, sent.includes(secret)]).toEqual([secret, false]);
  const name = sent.indexOf(START_TLS_NAME);
  const afterRequest = name === -1 ? 0 : name + START_TLS_NAME.length;
  if (sent.length > afterRequest && name !== -1) expect([0x30, HANDSHAKE]).toContain(sent[afterRequest]);
}
