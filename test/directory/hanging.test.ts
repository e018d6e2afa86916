/**
 * A directory that accepts connections and then sends nothing: logins that need it fail in time, and other logins are
 * not affected.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { createDirectoryService } from '../../src/iam/auth/directory-service.ts';
import { addPerson, PASSWORD as LOCAL_PASSWORD } from '../auth/people.ts';
import { fromAddress, type Stand, startStand } from '../auth/stand.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { findParts } from './servers/packages.ts';
import { PASSWORD } from './servers/people.ts';
import { type Recorder, startRecorder } from './servers/recorder.ts';
import type { DirectoryServer } from './servers/server.ts';
import { startSlapd } from './servers/slapd.ts';
import { directoryUrl, settingsFor } from './settings.ts';

const START_LIMIT_MS = 120_000;
const LOCAL_LOGINS = 200;
const AT_ONCE = 8;
const HANGING = 20;

const missing = (await findParts(['openldap'])).get('openldap');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

describe.skipIf(missing !== undefined)(`a directory that hangs${missing === undefined ? '' : `: ${missing}`}`, () => {
  let server: DirectoryServer;
  let database: FreshDatabase;

  beforeAll(async () => {
    [server, database] = await Promise.all([startSlapd({ small: true }), freshDatabase()]);
  }, START_LIMIT_MS);
  afterAll(async () => {
    await server?.stop();
    await database?.close();
  }, START_LIMIT_MS);

  const settings = (recorder: Recorder, changes: Partial<DirectorySettings>): DirectorySettings => {
    const scheme = changes.startTls === true || changes.ca === undefined ? 'ldap' : 'ldaps';
    return settingsFor(server, { urls: [directoryUrl(`${scheme}://127.0.0.1:${recorder.port}`)], ...changes });
  };

  /** At the connection, at the service account's bind, and so on through a login. */
  test.each([0, 1, 2, 3])('silent after %i answers: the deadline ends it, and the connection', async (silentAfter) => {
    const recorder = await startRecorder(server.port, { silentAfter });
    try {
      const directories = openDirectories([settings(recorder, { timeoutMs: 300 })]);
      await expect(directories.authenticate('alice', PASSWORD)).rejects.toThrow('did not answer within 300 ms');
      await expect.poll(() => recorder.open()).toBe(0);
    } finally {
      await recorder.close();
    }
  });

  test('silent in the middle of StartTLS and of TLS: the deadline ends it', async () => {
    for (const silentAfter of [0, 1]) {
      const recorder = await startRecorder(server.port, { silentAfter });
      try {
        const directories = openDirectories([settings(recorder, { timeoutMs: 300, startTls: true })]);
        await expect(directories.authenticate('alice', PASSWORD)).rejects.toThrow('did not answer within 300 ms');
        await expect.poll(() => recorder.open()).toBe(0);
      } finally {
        await recorder.close();
      }
    }
  });

  test('a login that has already waited gets only the rest of the timeout', async () => {
    const recorder = await startRecorder(server.port, { silentAfter: 0 });
    try {
      const directories = openDirectories([settings(recorder, { timeoutMs: 3_600_000 })]);
      await expect(directories.authenticate('alice', PASSWORD, 3_599_900)).rejects.toThrow('did not answer');
    } finally {
      await recorder.close();
    }
  });

  test('of two servers the one that hangs leaves time for the other', async () => {
    const recorder = await startRecorder(server.port, { silentAfter: 0 });
    try {
      const urls = [directoryUrl(`ldap://127.0.0.1:${recorder.port}`), directoryUrl(server.url)];
      const directories = openDirectories([settingsFor(server, { urls, timeoutMs: 4_000 })]);
      expect((await directories.authenticate('alice', PASSWORD)).kind).toBe('proved');
      expect(recorder.connections()).toBe(1);
    } finally {
      await recorder.close();
    }
  });

  test('200 people with local passwords log in while it hangs', { timeout: 120_000 }, async () => {
    const recorder = await startRecorder(server.port, { silentAfter: 0 });
    const directories = openDirectories([settings(recorder, { timeoutMs: 60_000 })]);
    const stand: Stand = await startStand(database.url, {
      directory: createDirectoryService({ directories, names: ['openldap'] }),
      login: { failuresPerAddress: 10_000, failuresPerAccount: 10_000 },
    });
    try {
      await addPerson(database.db, { email: 'ada@example.com' });
      let answered = 0;
      const hanging = Array.from({ length: HANGING }, async (_, i) => {
        const body = { auth_type: 'ldap', username: `somebody${i}`, password: PASSWORD };
        const reply = await stand.post('/v1/auth/login', body, fromAddress(`203.0.113.${i + 1}`));
        answered++;
        return reply.status;
      });
      await expect.poll(() => recorder.open()).toBe(HANGING);
      let begun = 0;
      const statuses: number[] = [];
      const client = async (): Promise<void> => {
        while (begun < LOCAL_LOGINS) {
          begun++;
          const reply = await stand.post('/v1/auth/login', { email: 'ada@example.com', password: LOCAL_PASSWORD });
          statuses.push(reply.status);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, client));
      expect(statuses).toEqual(statuses.map(() => 200));
      expect(statuses).toHaveLength(LOCAL_LOGINS);
      // No login that waits for the directory has an answer yet, so no local login waited for one of them.
      expect(answered).toBe(0);
      await recorder.close();
      expect(new Set(await Promise.all(hanging))).toEqual(new Set([503]));
    } finally {
      await stand.close();
      await recorder.close().catch(() => undefined);
    }
  });
});
