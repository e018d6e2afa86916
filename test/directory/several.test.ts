/**
 * Several directories: which of them gets a password depends on the name, and never on what another one knows, answers
 * or does not answer.
 */

import { Client } from 'ldapts';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { Directories } from '../../src/directory/model.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { Fault } from '../../src/domain/errors.ts';
import { createDirectoryService } from '../../src/iam/auth/directory-service.ts';
import { startStand } from '../auth/stand.ts';
import { freshDatabase } from '../support/database.ts';
import { freePort } from '../support/ports.ts';
import { cellOf } from './logins.ts';
import { findParts } from './servers/packages.ts';
import { PASSWORD, PEOPLE, uidDn, WRONG_PASSWORD } from './servers/people.ts';
import { type Recorder, type RecorderOptions, startRecorder } from './servers/recorder.ts';
import type { DirectoryServer } from './servers/server.ts';
import { startSlapd } from './servers/slapd.ts';
import { directoryUrl, settingsFor } from './settings.ts';

const START_LIMIT_MS = 120_000;
/** A user that only the second directory has, and one that both have. */
const ONLY_LAB = 'lena';
const BOTH = PEOPLE.alice.login;

const missing = (await findParts(['openldap'])).get('openldap');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

describe.skipIf(missing !== undefined)(`several directories${missing === undefined ? '' : `: ${missing}`}`, () => {
  let corpServer: DirectoryServer;
  let labServer: DirectoryServer;
  const recorders: Recorder[] = [];

  beforeAll(async () => {
    [corpServer, labServer] = await Promise.all([startSlapd({ small: true }), startSlapd({ small: true })]);
    const client = new Client({ url: labServer.url });
    await client.bind(labServer.manager.dn, labServer.manager.password);
    const entry = {
      objectClass: ['top', 'inetOrgPerson'],
      uid: ONLY_LAB,
      cn: ONLY_LAB,
      sn: ONLY_LAB,
      userPassword: PASSWORD,
    };
    await client.add(uidDn(labServer, { ...PEOPLE.alice, login: ONLY_LAB }), entry);
    await client.unbind();
  }, START_LIMIT_MS);
  afterEach(async () => {
    for (const recorder of recorders.splice(0)) await recorder.close();
  });
  afterAll(async () => {
    await Promise.all([corpServer, labServer].map((server) => server?.stop()));
  }, START_LIMIT_MS);

  interface Pair {
    readonly directories: Directories;
    readonly corp: Recorder;
    readonly lab: Recorder;
  }

  /** Each server behind a recorder of all that it is sent. */
  async function pair(
    corpChanges: Partial<DirectorySettings> = {},
    labChanges: Partial<DirectorySettings> = {},
    options: RecorderOptions = {},
  ): Promise<Pair> {
    const corp = await startRecorder(corpServer.port, options);
    const lab = await startRecorder(labServer.port);
    recorders.push(corp, lab);
    const one = (server: DirectoryServer, name: string, recorder: Recorder): DirectorySettings =>
      settingsFor(server, { name, domains: [name], urls: [directoryUrl(`ldap://127.0.0.1:${recorder.port}`)] });
    const directories = openDirectories([
      { ...one(corpServer, 'corp', corp), ...corpChanges },
      { ...one(labServer, 'lab', lab), ...labChanges },
    ]);
    return { directories, corp, lab };
  }
  const OPEN = { namesWithoutDomain: true };
  const pattern = (server: DirectoryServer) => ({ userDnPattern: `uid={0},${server.people}` });
  const hasPassword = (recorder: Recorder): boolean =>
    [PASSWORD, WRONG_PASSWORD].some((password) => recorder.sent().includes(password));
  const untouched = (recorder: Recorder) => expect([recorder.connections(), recorder.sent().length]).toEqual([0, 0]);

  test.each([BOTH, ONLY_LAB, `${BOTH}@elsewhere`, `ELSEWHERE\\${BOTH}`])(
    'a name without a configured domain goes to none of them: %s',
    async (name) => {
      const { directories, corp, lab } = await pair();
      expect(await directories.authenticate(name, PASSWORD)).toEqual({ kind: 'refused', reason: 'no_domain' });
      expect(await directories.test({ username: name, password: PASSWORD })).toMatchObject([
        { step: 'find_user', ok: false, advice: expect.stringContaining('corp, lab') },
      ]);
      untouched(corp);
      untouched(lab);
    },
  );

  test('a name with a domain goes to that directory, and the other one gets nothing', async () => {
    const { directories, corp, lab } = await pair(OPEN, OPEN);
    expect(await directories.authenticate(`LAB\\${BOTH}`, PASSWORD)).toMatchObject({
      kind: 'proved',
      person: { directory: 'lab' },
    });
    expect(cellOf(await directories.authenticate(`${BOTH}@lab`, WRONG_PASSWORD))).toBe('wrong_password');
    expect(cellOf(await directories.authenticate('nobody@lab', PASSWORD))).toBe('unknown_user');
    untouched(corp);
    expect(hasPassword(lab)).toBe(true);
  });

  test.each([
    ['is down', async () => ({ urls: [directoryUrl(`ldap://127.0.0.1:${await freePort()}`)] }), {}],
    ['hangs', async () => ({ timeoutMs: 600 }), { silentAfter: 0 }],
    ['hangs at the search', async () => ({ timeoutMs: 600 }), { silentAfter: 1 }],
    ['ends the connection at the person’s bind', async () => ({}), { answer: cutAt(3) }],
    [
      'does not take its service account',
      async () => ({ serviceAccount: { dn: 'cn=nobody,dc=x', password: 'x' } }),
      {},
    ],
  ] satisfies readonly (readonly [string, () => Promise<Partial<DirectorySettings>>, RecorderOptions])[])(
    'after a fault no other directory sees the password: the first %s',
    async (_, changes, options) => {
      for (const name of [BOTH, ONLY_LAB, `${BOTH}@corp`]) {
        const { directories, lab } = await pair({ ...OPEN, type: 'openldap', ...(await changes()) }, OPEN, options);
        await expect(directories.authenticate(name, PASSWORD)).rejects.toBeInstanceOf(Fault);
        untouched(lab);
      }
    },
  );

  test.each([
    ['wrong', BOTH, WRONG_PASSWORD, 'wrong_password'],
    ['right', BOTH, PASSWORD, 'in, no roles'],
    ['right, of an account that is locked', PEOPLE.disabled.login, PASSWORD, 'locked'],
    ['right, and expired', PEOPLE.oldPassword.login, PASSWORD, 'password: expired'],
    ['right, and to be changed', PEOPLE.mustChange.login, PASSWORD, 'password: must_change'],
  ])('after a checked password no other directory sees it: %s', async (_, name, password, cell) => {
    for (const changes of [OPEN, { ...OPEN, ...pattern(corpServer) }]) {
      const { directories, corp, lab } = await pair(changes, OPEN);
      expect(cellOf(await directories.authenticate(name, password))).toBe(cell);
      expect(hasPassword(corp)).toBe(true);
      untouched(lab);
    }
  });

  test('a bind by a pattern is a checked password, also of a name that the directory does not know', async () => {
    const { directories, corp, lab } = await pair({ ...OPEN, ...pattern(corpServer) }, OPEN);
    expect(cellOf(await directories.authenticate(ONLY_LAB, PASSWORD))).toBe('wrong_password');
    expect(hasPassword(corp)).toBe(true);
    untouched(lab);
  });

  test('with names-without-domain in both, the second directory authenticates a user that the search of the first does not find', async () => {
    for (const changes of [OPEN, { ...OPEN, ...pattern(labServer) }]) {
      const { directories, corp, lab } = await pair(OPEN, changes);
      expect(await directories.authenticate(ONLY_LAB, PASSWORD)).toMatchObject({
        kind: 'proved',
        person: { directory: 'lab' },
      });
      expect(cellOf(await directories.authenticate(ONLY_LAB, WRONG_PASSWORD))).toBe('wrong_password');
      expect(corp.connections()).toBe(2);
      expect(hasPassword(corp)).toBe(false);
      expect(hasPassword(lab)).toBe(true);
      expect(directories.problems.filter((problem) => problem.includes('without a domain'))).toHaveLength(1);
    }
  });

  test('a name without a domain goes only to the directory that accepts such names', async () => {
    const { directories, corp, lab } = await pair({}, OPEN);
    expect(await directories.authenticate(BOTH, PASSWORD)).toMatchObject({
      kind: 'proved',
      person: { directory: 'lab' },
    });
    expect(cellOf(await directories.authenticate('nobody', PASSWORD))).toBe('unknown_user');
    untouched(corp);
    expect(lab.connections()).toBe(2);
    expect(directories.problems.filter((problem) => problem.includes('without a domain'))).toEqual([]);
  });

  test('the API answers a name without a domain like a wrong password, and answers 503 while a directory is down, also for users of the other one', async () => {
    const database = await freshDatabase();
    await database.db.knex('tenants').insert({ id: 'default', name: 'default' }).onConflict('id').ignore();
    const down = { urls: [directoryUrl(`ldap://127.0.0.1:${await freePort()}`)] };
    const { directories, lab } = await pair({ ...OPEN, ...down }, OPEN);
    const closed = await pair();
    const names = ['corp', 'lab'];
    const stands = [
      await startStand(database.url, { directory: createDirectoryService({ directories, names }) }),
      await startStand(database.url, { directory: createDirectoryService({ directories: closed.directories, names }) }),
    ];
    try {
      const replies = await Promise.all(
        stands.map((stand) => stand.post('/v1/auth/login', { auth_type: 'ldap', username: BOTH, password: PASSWORD })),
      );
      expect(replies.map(({ status, json }) => [status, json['code']])).toEqual([
        [503, 'unavailable'],
        [401, 'invalid_credential'],
      ]);
      untouched(lab);
      untouched(closed.lab);
      const rows = await database.db.knex('audit_log').where({ action: 'auth.login' }).select('after');
      expect(rows).toMatchObject([{ after: { reason: 'no_domain', username: BOTH } }]);
    } finally {
      for (const stand of stands) await stand.close();
      await database.close();
    }
  });
});

/** Passes this many answers on, and then cuts both sides off. */
function cutAt(count: number): NonNullable<RecorderOptions['answer']> {
  return (bytes, nth) => (nth < count ? bytes : null);
}
