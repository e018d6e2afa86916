/** POST /v1/iam/directory/test: the steps of a login, for the administrator that configures a directory. */

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Harness, outcome, startHarness } from '../http/harness.ts';
import {
  DIRECTORY,
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  startDirectoryWorld,
  WRONG,
} from './directory-world.ts';

await describeWithSlapd('trying a directory out', () => {
  let world: DirectoryWorld;
  let h: Harness;
  let n = 0;
  let name: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    h = await startHarness({ directory: world.service() });
  });
  beforeEach(async () => {
    name = `person${++n}`;
    await world.add(name);
    await world.join('developers', name);
  });
  afterAll(async () => {
    await h.close();
    await world.stop();
  });

  const TEST = '/v1/iam/directory/test';
  const tryOut = (body: object, as = h.root.token) => h.api('POST', TEST, { as, body });

  interface Step {
    readonly step: string;
    readonly ok: boolean;
  }

  function stepsOf(json: Readonly<Record<string, unknown>>): readonly Step[] {
    return Array.isArray(json['steps']) ? json['steps'] : [];
  }

  test('shows each step of a successful login, and begins no session', async () => {
    const reply = await tryOut({ username: name, password: LDAP_PASSWORD });
    const steps = stepsOf(reply.json);
    expect([outcome(reply), steps.filter(({ ok }) => !ok)]).toEqual(['200', []]);
    expect(steps.map(({ step }) => step)).toEqual(
      expect.arrayContaining(['connect', 'find_user', 'user_bind', 'groups', 'roles', 'tenant']),
    );
    expect(reply.text).toContain('developer');
    expect(await h.db.knex('users').where({ source: 'ldap' })).toEqual([]);
    const [session, ...others] = await h.db.knex('sessions');
    expect([session, others]).toEqual([expect.objectContaining({ user_id: h.root.id }), []]);
  });

  test('ends at the failing step, has it in the audit row, and stores no password', async () => {
    const reply = await tryOut({ username: name, password: WRONG, directory: DIRECTORY });
    expect(stepsOf(reply.json).at(-1)).toMatchObject({ step: 'user_bind', ok: false, detail: expect.any(String) });
    expect((await h.audit('directory.test')).at(-1)).toMatchObject({
      actor_id: h.root.id,
      target_type: 'directory',
      target_id: DIRECTORY,
      result: 'failure',
      after: { username: name, failed_step: 'user_bind' },
    });
    expect(reply.text + JSON.stringify(await h.audit())).not.toContain(WRONG);
    expect(reply.text).not.toContain(world.server.service.password);
  });

  test('fails at the tenant if it does not exist or is suspended, as the login does', async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'globex', name: 'Globex' } });
    await world.join('globex', name);
    const last = async () => stepsOf((await tryOut({ username: name, password: LDAP_PASSWORD })).json).at(-1);
    expect(await last()).toMatchObject({ step: 'tenant', ok: true });
    await h.api('POST', '/v1/iam/tenants/globex/suspend', { as: h.root.token });
    expect(await last()).toMatchObject({ step: 'tenant', ok: false, detail: expect.stringContaining('suspended') });
    await world.leave('globex', name);
    await world.join('nowhere', name);
    expect(await last()).toMatchObject({ step: 'tenant', ok: false, detail: expect.stringContaining('nowhere') });
    expect((await h.audit('directory.test')).at(-1)).toMatchObject({
      result: 'failure',
      after: { username: name, failed_step: 'tenant' },
    });
  });

  test('wrong passwords count as failed logins: after the limit, tries and logins are rejected with 429', async () => {
    for (let i = 0; i < 10; i++) await tryOut({ username: name, password: WRONG });
    expect(outcome(await tryOut({ username: name, password: LDAP_PASSWORD }))).toBe('429 too_many_attempts');
    const login = { auth_type: 'ldap', username: name, password: LDAP_PASSWORD };
    expect(outcome(await h.api('POST', '/v1/auth/login', { body: login }))).toBe('429 too_many_attempts');
  });

  test('tries without a password count as no failure', async () => {
    for (let i = 0; i < 12; i++) expect(outcome(await tryOut({ username: name }))).toBe('200');
  });

  test('is for platform administrators only', async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
    const boss = await h.person('acme', ['tenant-admin']);
    expect(outcome(await tryOut({ username: name }, boss.token))).toBe('403 insufficient_permission');
  });

  test('is 404 for an unknown directory, and if no directory is configured', async () => {
    expect(outcome(await tryOut({ username: name, directory: 'other' }))).toBe('404 not_found');
    const bare = await startHarness();
    expect(outcome(await bare.api('POST', TEST, { as: bare.root.token, body: { username: name } }))).toBe(
      '404 not_found',
    );
    await bare.close();
  });
});
