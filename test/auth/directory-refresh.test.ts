/**
 * Refreshes of the sessions of directory users: each one looks up the person, and an unreachable directory uses up no
 * token.
 */

import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { refresh as refreshToken } from '../../src/iam/auth/refresh.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import {
  DIRECTORY,
  type DirectoryWorld,
  describeWithSlapd,
  LDAP_PASSWORD,
  LOCKED,
  startDirectoryWorld,
} from './directory-world.ts';
import { clear } from './people.ts';
import { bearer, type Reply, refreshTokenOf, type Stand, startStand } from './stand.ts';

await describeWithSlapd('refreshing a session of a directory', () => {
  let world: DirectoryWorld;
  let database: FreshDatabase;
  let stand: Stand;
  let n = 0;
  let name: string;

  beforeAll(async () => {
    world = await startDirectoryWorld();
    database = await freshDatabase();
    stand = await startStand(database.url, { directory: world.service() });
  });
  beforeEach(async () => {
    for (const id of ['default', 'acme', 'globex'])
      await database.db.knex('tenants').insert({ id, name: id }).onConflict('id').ignore();
    name = `person${++n}`;
    await world.add(name);
    await world.join('developers', name);
  });
  afterEach(async () => {
    world.setWire('open');
    await clear(database.db);
    await stand.parts.feed.catchUp();
  });
  afterAll(async () => {
    await stand.close();
    await database.close();
    await world.stop();
  });

  const login = (username: string, at: Stand = stand): Promise<Reply> =>
    at.post('/v1/auth/login', { auth_type: 'ldap', username, password: LDAP_PASSWORD });
  const refresh = (token: string, at: Stand = stand): Promise<Reply> =>
    at.post('/v1/auth/refresh', { refresh_token: token });
  const code = (reply: Reply): string => `${reply.status} ${String(reply.json['code'] ?? '')}`.trim();
  const me = (reply: Reply, at: Stand = stand): Promise<Reply> => at.get('/v1/auth/me', bearer(reply));

  async function begun(): Promise<{ readonly first: Reply; readonly token: string }> {
    const first = await login(name);
    world.reports.length = 0;
    return { first, token: refreshTokenOf(first) };
  }

  interface AuditRow {
    readonly action: string;
    readonly actor_id: string | null;
    readonly tenant_id: string | null;
    readonly result: string;
    readonly after: Readonly<Record<string, unknown>>;
  }

  async function audited(action: string): Promise<readonly AuditRow[]> {
    return await database.db.knex<AuditRow>('audit_log').where({ action }).orderBy('id');
  }

  async function sessionsLeft(): Promise<number> {
    const rows = await database.db.knex('sessions').whereNull('ended_at');
    return rows.length;
  }

  describe('roles', () => {
    test('of a group that the person left end with the refresh, at every server', async () => {
      const other = await startStand(database.url, { directory: world.service() });
      await world.join('analysts', name);
      const { first, token } = await begun();
      expect((await me(first, other)).json).toMatchObject({ roles: ['analyst', 'developer'] });
      await world.leave('developers', name);
      const second = await refresh(token);
      expect(second.status).toBe(200);
      expect((await me(second)).json).toMatchObject({ roles: ['analyst'] });
      // The access token from before the refresh has lost it too.
      expect((await me(first)).json).toMatchObject({ roles: ['analyst'] });
      await other.parts.feed.catchUp();
      expect((await me(first, other)).json).toMatchObject({ roles: ['analyst'] });
      await other.close();
      expect(await audited('user.update')).toMatchObject([
        { actor_id: null, result: 'success', after: { directory_roles: ['analyst'], directory: DIRECTORY } },
      ]);
      expect(world.reports).toEqual([{ operation: 'refresh', directory: DIRECTORY, outcome: 'success' }]);
    });

    test('of a group that the person joined are added, and assigned ones stay', async () => {
      const { first, token } = await begun();
      const { id } = (await me(first)).json;
      await database.db.knex('user_roles').insert({ user_id: String(id), role_name: 'auditor' });
      await world.join('analysts', name);
      expect((await me(await refresh(token))).json).toMatchObject({ roles: ['analyst', 'auditor', 'developer'] });
    });

    test('that stayed the same are not written again', async () => {
      const { token } = await begun();
      expect((await refresh(token)).status).toBe(200);
      expect(await audited('user.update')).toEqual([]);
    });
  });

  describe('a refresh for a person that is gone', () => {
    const GONE = {
      removed: { make: () => world.remove(name), reasons: ['removed'] },
      disabled: { make: () => world.set(name, ...LOCKED), reasons: ['disabled', 'locked'] },
      'of another tenant': { make: () => world.join('acme', name), reasons: ['tenant_changed'] },
    };

    test.each(Object.entries(GONE))(
      '(%s) is rejected and ends the session; the audit row has the reason',
      async (_title, { make, reasons }) => {
        const { first, token } = await begun();
        const { id } = (await me(first)).json;
        await make();
        expect(code(await refresh(token))).toBe('401 invalid_credential');
        expect(code(await me(first))).toBe('401 invalid_credential');
        expect(await sessionsLeft()).toBe(0);
        const rows = await audited('auth.refresh');
        expect(rows).toMatchObject([
          { actor_id: id, tenant_id: 'default', result: 'refused', after: { directory: DIRECTORY, sessions_ended: 1 } },
        ]);
        expect(reasons).toContain(rows[0]?.after['reason']);
        expect(world.reports).toMatchObject([
          { operation: 'refresh', directory: DIRECTORY, outcome: rows[0]?.after['reason'] },
        ]);
        // The session has ended, so its refresh causes no further lookup.
        expect(code(await refresh(token))).toBe('401 invalid_credential');
        expect(world.reports).toHaveLength(1);
      },
    );

    test('ends every session of a removed person', async () => {
      const { token } = await begun();
      const other = await login(name);
      await world.remove(name);
      expect(code(await refresh(token))).toBe('401 invalid_credential');
      expect(code(await me(other))).toBe('401 invalid_credential');
      expect((await audited('auth.refresh'))[0]?.after).toMatchObject({ sessions_ended: 2 });
    });

    test('is rejected as not_readable if no service account can read the person', async () => {
      const blind = await startStand(database.url, {
        directory: world.service({ serviceAccount: undefined, userDnPattern: `uid={0},${world.server.people}` }),
      });
      const reply = await login(name, blind);
      expect(code(reply)).toBe('200');
      expect(code(await refresh(refreshTokenOf(reply), blind))).toBe('401 invalid_credential');
      await blind.close();
      expect((await audited('auth.refresh'))[0]?.after).toMatchObject({ reason: 'not_readable' });
    });
  });

  describe('an unreachable directory', () => {
    test.each(['gone', 'hanging'] as const)(
      '(%s) is 503, and the refresh token works after the directory is back',
      async (state) => {
        const quick = await startStand(database.url, { directory: world.service({ timeoutMs: 500 }) });
        const { first, token } = await begun();
        world.setWire(state);
        expect(code(await refresh(token, quick))).toBe('503 unavailable');
        expect(code(await refresh(token, quick))).toBe('503 unavailable');
        // The former roles stay in force, because no refresh succeeded.
        expect((await me(first)).json).toMatchObject({ roles: ['developer'] });
        world.setWire('open');
        await quick.close();
        expect((await refresh(token)).status).toBe(200);
      },
    );

    test('does not prevent a repeated refresh whose answer was lost: it returns the same successor', async () => {
      const { token } = await begun();
      const lost = refreshTokenOf(await refresh(token));
      world.setWire('gone');
      expect(refreshTokenOf(await refresh(token))).toBe(lost);
      world.setWire('open');
      expect((await refresh(lost)).status).toBe(200);
    });
  });

  describe('at once', () => {
    test('fifty refreshes of one token, at two servers, make one successor, with at most one lookup of each server', async () => {
      const other = await startStand(database.url, { directory: world.service() });
      const { token } = await begun();
      await world.join('analysts', name);
      const replies = await Promise.all(
        Array.from({ length: 50 }, (_, i) => refresh(token, i % 2 === 0 ? stand : other)),
      );
      await other.close();
      expect(new Set(replies.map(code))).toEqual(new Set(['200']));
      const successors = new Set(replies.map(refreshTokenOf));
      expect(successors.size).toBe(1);
      expect(world.reports.length).toBeLessThanOrEqual(2);
      expect(await database.db.knex('refresh_tokens').count('* as n')).toEqual([{ n: 2 }]);
      expect(await audited('user.update')).toHaveLength(1);
      const [successor = ''] = successors;
      expect((await me(await refresh(successor))).json).toMatchObject({ roles: ['analyst', 'developer'] });
    });

    test('refreshes of one token in sixteen processes make one successor, with the current roles', async () => {
      const { token } = await begun();
      await world.leave('developers', name);
      const from = {
        address: undefined,
        throttledAs: undefined,
        userAgent: undefined,
        requestId: makeId('req', 0, randomBytes(10)),
        nowMs: Date.now(),
      };
      const pairs = await Promise.all(
        Array.from({ length: 16 }, () =>
          refreshToken({ ...stand.parts, claims: new Map() }, { text: token, via: 'body' }, from),
        ),
      );
      expect(new Set(pairs.map((pair) => pair.refreshToken)).size).toBe(1);
      expect(await database.db.knex('refresh_tokens').count('* as n')).toEqual([{ n: 2 }]);
      expect(await audited('user.update')).toHaveLength(1);
    });

    test('refreshes of many sessions of one user, during logins and its deactivation, end without a fault', async () => {
      const tokens = (await Promise.all(Array.from({ length: 10 }, () => login(name)))).map(refreshTokenOf);
      const user = await database.db.knex('users').first('id');
      await world.leave('developers', name);
      const replies = await Promise.all([
        ...tokens.map((token) => refresh(token)),
        ...Array.from({ length: 5 }, () => login(name)),
      ]);
      expect(new Set(replies.map(code))).toEqual(new Set(['200']));
      expect(await database.db.knex('user_roles').where({ user_id: Object(user).id })).toEqual([]);
    });
  });

  test('a token that is not valid anyway causes no lookup', async () => {
    const { token } = await begun();
    const next = refreshTokenOf(await refresh(token));
    await stand.post('/v1/auth/logout', { refresh_token: next });
    world.reports.length = 0;
    for (const text of ['', `prt_${'a'.repeat(43)}`, next])
      expect(code(await refresh(text))).toBe('401 invalid_credential');
    expect(world.reports).toEqual([]);
  });
});
