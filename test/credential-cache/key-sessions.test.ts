/** Sessions of keys without a secret, and sessions that a scope narrows. */

import { describe, expect, test } from 'vitest';
import type { KeyRecord, SessionRecord, UserRecord } from '../../src/domain/records.ts';
import { digest, keyId, roleName, sessionId, tenantId, userId } from './support/ids.ts';
import {
  ADMIN_SESSION,
  ADMINISTRATOR,
  adminsToken,
  aKey,
  aLive,
  aSession,
  aUser,
  DEVELOPER,
  NOW,
} from './support/world.ts';

const KEY = digest(7);
const KEY_SESSION = sessionId(7);
const token = { kind: 'token', token: 'of a key', digest: 'digest of a token of a key' } as const;

function aWorld() {
  const world = aLive();
  const change = {
    key: (parts: Partial<KeyRecord> = {}) => world.store.putKey(aKey({ id: keyId(7), digest: KEY, ...parts })),
    session: (parts: Partial<SessionRecord> = {}) =>
      world.store.putSession(aSession({ id: KEY_SESSION, userId: undefined, keyId: keyId(7), ...parts })),
    user: (parts: Partial<UserRecord> = {}) => world.store.putUser(aUser(parts)),
  };
  change.key();
  change.session();
  const times = { validFromMs: NOW - 1000, validUntilMs: NOW + 1000 };
  world.verifier.known.set(token.token, { kind: 'valid', keyDigest: KEY, sessionId: KEY_SESSION, ...times });
  const apply = () => world.store.deliver(world.live, 0);
  const identity = async (credential: typeof token | typeof adminsToken = token) =>
    (await world.live.resolve(credential, undefined, NOW)).identity;
  return { ...world, change, apply, identity };
}

type Change = ReturnType<typeof aWorld>['change'];

describe('the access token of a key', () => {
  test('proves the key with its session, and the same principal object while nothing changes', async () => {
    const { identity } = aWorld();
    const first = await identity();
    expect(first).toMatchObject({
      kind: 'proved',
      principal: { kind: 'api_key', id: keyId(7), sessionId: KEY_SESSION, owner: { id: DEVELOPER } },
    });
    expect(await identity()).toBe(first);
  });

  test.each<[string, (change: Change) => void, string]>([
    ['its session ended', (change) => change.session({ ended: true }), 'session_ended'],
    ['its session is over', (change) => change.session({ expiresAtMs: NOW }), 'session_ended'],
    ['its session belongs to another key', (change) => change.session({ keyId: keyId(8) }), 'session_ended'],
    [
      'its session belongs to a user',
      (change) => change.session({ keyId: undefined, userId: DEVELOPER }),
      'session_ended',
    ],
    ['the key is revoked', (change) => change.key({ revoked: true }), 'revoked'],
    ['the key is disabled', (change) => change.key({ disabled: true }), 'disabled'],
    ['the key has expired', (change) => change.key({ expiresAtMs: NOW }), 'key_expired'],
    ['the owner is deactivated', (change) => change.user({ status: 'deactivated' }), 'user_deactivated'],
    ['the owner is in another tenant', (change) => change.user({ tenantId: tenantId('away') }), 'user_missing'],
    ['the owner does not exist', (change) => change.key({ userId: userId(99) }), 'user_missing'],
  ])(
    'proves nothing when %s, from its first use and from the next one after the change',
    async (_name, end, reason) => {
      const fresh = aWorld();
      end(fresh.change);
      expect(await fresh.identity()).toMatchObject({ kind: 'invalid', reason });
      const used = aWorld();
      expect((await used.identity()).kind).toBe('proved');
      end(used.change);
      used.apply();
      expect(await used.identity()).toMatchObject({ kind: 'invalid', reason });
    },
  );

  test('has the new scopes of the key, and the new roles of its owner, after a change', async () => {
    const { change, apply, identity } = aWorld();
    await identity();
    change.key({ scopes: ['rag:read'] });
    change.user({ roles: [roleName('analyst')] });
    apply();
    expect(await identity()).toMatchObject({
      principal: { grant: { patterns: ['rag:read'] }, owner: { roles: ['analyst'] }, sessionId: KEY_SESSION },
    });
  });
});

describe('a scope', () => {
  test('narrows the session of a key', async () => {
    const { change, identity } = aWorld();
    change.session({ scope: ['chat:write'] });
    const proved = await identity();
    expect(proved).toMatchObject({ kind: 'proved', principal: { scope: { all: false } } });
    expect(proved).toHaveProperty('principal.scope.texts', new Set(['chat:write']));
  });

  test.each([
    [['admin:*'], false],
    [['*:read', '*:write'], false],
    [['*'], true],
    [['*:*'], true],
  ])('of %j leaves an administrator a platform administrator: %j', async (scope, platformAdmin) => {
    const { store, identity } = aWorld();
    store.putSession(aSession({ id: ADMIN_SESSION, userId: ADMINISTRATOR, scope }));
    expect(await identity(adminsToken)).toMatchObject({ principal: { kind: 'user', platformAdmin } });
  });
});
