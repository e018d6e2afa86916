/**
 * An OpenLDAP server with its defaults: it answers for a locked account as for a wrong password, and only the entry
 * shows the reason.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { Directories } from '../../src/directory/model.ts';
import { findParts } from './servers/packages.ts';
import { PASSWORD, PEOPLE, WRONG_PASSWORD } from './servers/people.ts';
import type { DirectoryServer } from './servers/server.ts';
import { startSlapd } from './servers/slapd.ts';
import { settingsFor } from './settings.ts';

const START_LIMIT_MS = 120_000;
/** As many wrong passwords as the server's policy takes. */
const MAX_FAILURES = 3;

const missing = (await findParts(['openldap'])).get('openldap');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

describe.skipIf(missing !== undefined)(
  `a server that hides locks${missing === undefined ? '' : `: ${missing}`}`,
  () => {
    let server: DirectoryServer;
    let directories: Directories;

    beforeAll(async () => {
      server = await startSlapd({ small: true, silentLocks: true });
      directories = openDirectories([settingsFor(server)]);
      for (let i = 0; i < MAX_FAILURES; i++) await directories.authenticate(PEOPLE.locked.login, WRONG_PASSWORD, 0);
    }, START_LIMIT_MS);
    afterAll(() => server?.stop(), START_LIMIT_MS);

    test.each([
      { what: 'locked after wrong passwords', person: PEOPLE.locked, reason: 'locked', advice: /unlock it there/ },
      {
        what: 'disabled by an administrator',
        person: PEOPLE.disabled,
        reason: 'disabled',
        advice: /disabled in the directory/,
      },
      { what: 'past its end', person: PEOPLE.expired, reason: 'expired', advice: /expired in the directory/ },
    ])('a test of an account that is $what gives the same reason as a login', async ({ person, reason, advice }) => {
      expect(await directories.authenticate(person.login, PASSWORD, 0)).toMatchObject({ kind: 'refused', reason });
      const steps = await directories.test({ username: person.login, password: PASSWORD });
      expect(steps.at(-1)).toMatchObject({
        step: 'user_bind',
        ok: false,
        detail: expect.stringContaining(`: ${reason}`),
        advice: expect.stringMatching(advice),
      });
    });

    test('a test with a wrong password of a usable account says wrong_password', async () => {
      const steps = await directories.test({ username: PEOPLE.alice.login, password: WRONG_PASSWORD });
      expect(steps.at(-1)).toMatchObject({
        step: 'user_bind',
        ok: false,
        detail: expect.stringContaining(': wrong_password'),
      });
    });
  },
);
