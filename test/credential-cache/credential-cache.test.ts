import { describe, expect, test } from 'vitest';
import type { Resolution } from '../../src/credential-cache/credential-cache.ts';
import { LIMITS } from '../../src/credential-cache/limits.ts';
import type { VerifiedToken } from '../../src/credential-cache/ports.ts';
import { type HeaderValue, REPEATED } from '../../src/decision/model.ts';
import type { CredentialForm } from '../../src/domain/credential.ts';
import { Fault } from '../../src/domain/errors.ts';
import { digest, keyId, roleName, sessionId, tenantId, userId } from './support/ids.ts';
import { ModelStore, settle } from './support/model-store.ts';
import {
  ADMIN_SESSION,
  ADMINISTRATOR,
  AWAY,
  adminsToken,
  aKey,
  aLive,
  aPolicy,
  aSession,
  aTenant,
  aUser,
  DEVELOPER,
  developersToken,
  HOME,
  ISSUER,
  initialState,
  NOW,
  OWNED,
  owned,
  SESSION,
  TENANTS_OWN,
  tenantsOwn,
  unknownKey,
} from './support/world.ts';

type World = ReturnType<typeof aLive>;

const resolve = async (
  { live }: World,
  credential: CredentialForm,
  header?: HeaderValue,
  nowMs = NOW,
): Promise<Resolution> => await live.resolve(credential, header, nowMs);

/** Returns `proved`, `expired`, `missing`, or the reason why the credential is not valid. */
async function outcome(world: World, credential: CredentialForm, nowMs = NOW): Promise<string> {
  const { identity, snapshot } = await resolve(world, credential, undefined, nowMs);
  expect(snapshot === undefined).toBe(identity.kind !== 'proved');
  return identity.kind === 'invalid' ? identity.reason : identity.kind;
}

describe('the principal of a credential', () => {
  test('of an owned key is the key, with the roles of its owner', async () => {
    const { identity, snapshot } = await resolve(aLive(), owned);
    expect(identity).toMatchObject({
      kind: 'proved',
      principal: {
        kind: 'api_key',
        id: keyId(1),
        tenantId: HOME,
        grant: { patterns: ['chat:*'] },
        owner: { id: DEVELOPER, roles: ['developer'] },
      },
    });
    expect(snapshot?.own?.id).toBe(HOME);
    expect(snapshot?.effective).toBe(snapshot?.own);
  });

  test("of a tenant's own key is the key only", async () => {
    const { identity } = await resolve(aLive(), tenantsOwn);
    expect(identity).toMatchObject({ kind: 'proved', principal: { kind: 'api_key', id: keyId(2), owner: undefined } });
  });

  test('of an access token is its user, with the session', async () => {
    const { identity } = await resolve(aLive(), developersToken);
    expect(identity).toMatchObject({
      kind: 'proved',
      principal: {
        kind: 'user',
        id: DEVELOPER,
        tenantId: HOME,
        roles: ['developer'],
        platformAdmin: false,
        sessionId: SESSION,
      },
    });
  });

  test('is a platform administrator only with the built-in role admin', async () => {
    const { identity } = await resolve(aLive(), adminsToken);
    expect(identity).toMatchObject({ kind: 'proved', principal: { id: ADMINISTRATOR, platformAdmin: true } });
  });

  test('of a key of an administrator is no platform administrator', async () => {
    const world = aLive();
    world.store.putKey(aKey({ userId: ADMINISTRATOR }));
    expect((await resolve(world, owned)).identity).not.toHaveProperty('principal.platformAdmin');
  });

  test.each<[CredentialForm['kind'], CredentialForm, string]>([
    ['missing', { kind: 'missing' }, 'missing'],
    ['malformed', { kind: 'malformed' }, 'malformed'],
    ['bad_checksum', { kind: 'bad_checksum' }, 'checksum'],
  ])(
    'a credential of the form %s is answered without a lookup, also while the feed cannot be read',
    async (_, credential, expected) => {
      const world = aLive(new ModelStore(initialState()), {
        feed: { polledAtMs: Number.NEGATIVE_INFINITY, catchUp: () => Promise.reject() },
      });
      expect(world.live.resolve(credential, undefined, NOW)).not.toBeInstanceOf(Promise);
      expect(await outcome(world, credential)).toBe(expected);
      expect(world.store.loads.size).toBe(0);
    },
  );
});

describe('a credential that is not valid', () => {
  type Case = [why: string, credential: CredentialForm, change: (store: ModelStore) => void, expected: string];
  test.each<Case>([
    ['an unknown key', unknownKey, () => {}, 'unknown'],
    ['a revoked key', owned, (store) => store.putKey(aKey({ revoked: true })), 'revoked'],
    ['a disabled key', owned, (store) => store.putKey(aKey({ disabled: true })), 'disabled'],
    [
      'a disabled key by its old secret',
      owned,
      (store) => store.putKey(aKey({ disabled: true, graceUntilMs: NOW + 1 })),
      'disabled',
    ],
    ['a key past its expiry', owned, (store) => store.putKey(aKey({ expiresAtMs: NOW })), 'key_expired'],
    ['a rotated digest past its grace', owned, (store) => store.putKey(aKey({ graceUntilMs: NOW })), 'revoked'],
    [
      'a key of a deactivated owner',
      owned,
      (store) => store.putUser(aUser({ status: 'deactivated' })),
      'user_deactivated',
    ],
    ['a key whose owner is gone', owned, (store) => store.deleteUser(DEVELOPER), 'user_missing'],
    [
      'a key whose owner is of another tenant',
      owned,
      (store) => store.putUser(aUser({ tenantId: AWAY })),
      'user_missing',
    ],
    [
      'a key of a tenant that is gone',
      owned,
      (store) => store.commit('tenant', HOME, { tenants: new Map() }),
      'unknown',
    ],
    ['a bad signature', { kind: 'token', token: 'forged', digest: 'f' }, () => {}, 'signature'],
    ['a token that the verifier says is expired', { kind: 'token', token: 'old', digest: 'o' }, () => {}, 'expired'],
    ['an ended session', developersToken, (store) => store.putSession(aSession({ ended: true })), 'session_ended'],
    [
      'a session at its absolute end',
      developersToken,
      (store) => store.putSession(aSession({ expiresAtMs: NOW })),
      'session_ended',
    ],
    [
      'a session that is gone',
      developersToken,
      (store) => store.commit('session', SESSION, { sessions: new Map() }),
      'session_ended',
    ],
    [
      "somebody else's session",
      developersToken,
      (store) => store.putSession(aSession({ userId: ADMINISTRATOR })),
      'session_ended',
    ],
    [
      'a deactivated user',
      developersToken,
      (store) => store.putUser(aUser({ status: 'deactivated' })),
      'user_deactivated',
    ],
    ['a deleted user', developersToken, (store) => store.deleteUser(DEVELOPER), 'user_missing'],
  ])(
    '%s: not cached, and cached from the moment at which the change is applied',
    async (_, credential, change, expected) => {
      const cold = aLive();
      change(cold.store);
      expect(await outcome(cold, credential)).toBe(expected);

      const warm = aLive();
      await resolve(warm, credential);
      change(warm.store);
      warm.store.deliver(warm.live, 0);
      expect(await outcome(warm, credential)).toBe(expected);
    },
  );

  test('a key and a session work until the instant of their end, and not at it', async () => {
    const world = aLive();
    world.store.putKey(aKey({ expiresAtMs: NOW + 10 }));
    world.store.putSession(aSession({ expiresAtMs: NOW + 10 }));
    for (const credential of [owned, developersToken]) expect(await outcome(world, credential, NOW + 9)).toBe('proved');
    expect(await outcome(world, owned, NOW + 10)).toBe('key_expired');
    expect(await outcome(world, developersToken, NOW + 10)).toBe('session_ended');
  });

  test('a rotated digest works until the instant at which its grace ends', async () => {
    const world = aLive();
    world.store.putKey(aKey({ graceUntilMs: NOW + 10 }));
    expect(await outcome(world, owned, NOW + 9)).toBe('proved');
    expect(await outcome(world, owned, NOW + 10)).toBe('revoked');
  });

  test('a token is valid from its first instant to before its last, by the time of the request', async () => {
    const world = aLive();
    expect(await outcome(world, developersToken, NOW - 1001)).toBe('malformed');
    expect(await outcome(world, developersToken, NOW - 1000)).toBe('proved');
    expect(await outcome(world, developersToken, NOW + 999)).toBe('proved');
    expect(await outcome(world, developersToken, NOW + 1000)).toBe('expired');
    expect(world.verifier.verified).toBe(1);
  });
});

describe('the snapshot of a decision', () => {
  test('has the tenant that a platform administrator names, and none if it does not exist', async () => {
    const world = aLive();
    const away = await resolve(world, adminsToken, AWAY);
    expect(away.snapshot?.own?.id).toBe(HOME);
    expect(away.snapshot?.effective?.id).toBe(AWAY);
    const nowhere = await resolve(world, adminsToken, 'nowhere');
    expect(nowhere.snapshot?.own?.id).toBe(HOME);
    expect(nowhere.snapshot?.effective).toBeUndefined();
  });

  test.each<[string, HeaderValue]>([
    ['another tenant', AWAY],
    ['something malformed', 'NOT A TENANT'],
    ['a repeated header', REPEATED],
    ['its own tenant', HOME],
  ])('has only its own tenant for any other principal, and nothing of %s is loaded', async (_, header) => {
    for (const credential of [owned, tenantsOwn, developersToken]) {
      const world = aLive();
      const { snapshot } = await resolve(world, credential, header);
      expect(snapshot?.effective?.id).toBe(HOME);
      expect(world.store.loadsOf('tenant', AWAY)).toBe(0);
    }
  });

  test('has the global policies, and follows their changes', async () => {
    const world = aLive();
    expect((await resolve(world, owned)).snapshot?.global.denies.policies).toHaveLength(0);
    world.store.putGlobals([aPolicy('night')]);
    world.store.deliver(world.live, 0);
    expect((await resolve(world, owned)).snapshot?.global.denies.policies.map((policy) => policy.name)).toEqual([
      'night',
    ]);
  });
});

describe('cached', () => {
  test.each<[string, CredentialForm]>([
    ['an owned key', owned],
    ["a tenant's key", tenantsOwn],
    ['a token', developersToken],
    ['an unknown key', unknownKey],
  ])('%s is resolved synchronously, without a load or a verification', async (_, credential) => {
    const world = aLive();
    const first = await resolve(world, credential);
    const loads = [...world.store.loads.values()];
    const verified = world.verifier.verified;
    const second = world.live.resolve(credential, undefined, NOW);
    expect(second).not.toBeInstanceOf(Promise);
    expect(second).toEqual(first);
    expect([...world.store.loads.values()]).toEqual(loads);
    expect(world.verifier.verified).toBe(verified);
  });

  test.each<[string, CredentialForm]>([
    ['an owned key', owned],
    ["a tenant's key", tenantsOwn],
    ['a token', developersToken],
  ])(
    '%s gives the same principal while nothing changed, frozen, and another when its user changed',
    async (_, credential) => {
      const world = aLive();
      const principal = async () => {
        const { identity } = await resolve(world, credential);
        return identity.kind === 'proved' ? identity.principal : undefined;
      };
      const first = await principal();
      expect(await principal()).toBe(first);
      expect(Object.isFrozen(first)).toBe(true);
      world.store.putUser(aUser({ roles: [roleName('analyst')] }));
      world.store.deliver(world.live, 0);
      const second = await principal();
      expect(JSON.stringify(second).includes('analyst')).toBe(credential !== tenantsOwn);
      expect(JSON.stringify(second)).not.toContain('developer"');
    },
  );

  test('a hundred concurrent callers share one load of each entry', async () => {
    const world = aLive();
    await Promise.all(Array.from({ length: 100 }, () => resolve(world, developersToken)));
    expect([...world.store.loads.values()]).toEqual([1, 1, 1, 1]);
    expect(world.verifier.verified).toBe(1);
  });

  test('independent entries are loaded concurrently', async () => {
    const world = aLive(new ModelStore(initialState(), false));
    const resolution = resolve(world, owned);
    expect(world.store.pending.map((load) => load.kind)).toEqual(['key']);
    world.store.pending[0]?.answer();
    await settle();
    expect(world.store.pending.map((load) => load.kind).toSorted()).toEqual(['global', 'tenant', 'user']);
    for (const load of world.store.pending) load.answer();
    expect((await resolution).identity.kind).toBe('proved');
  });
});

describe('changes', () => {
  test('a batch is applied at once, and affects only the entries that it names', async () => {
    const world = aLive();
    for (const credential of [owned, tenantsOwn, developersToken]) await resolve(world, credential);
    world.store.putKey(aKey({ revoked: true }));
    world.store.putSession(aSession({ ended: true }));
    world.store.deliver(world.live, 0);
    expect(world.live.resolve(tenantsOwn, undefined, NOW)).not.toBeInstanceOf(Promise);
    expect(await outcome(world, owned)).toBe('revoked');
    expect(await outcome(world, developersToken)).toBe('session_ended');
  });

  test('a load that runs during a revocation never admits the key, also if its snapshot is older', async () => {
    const world = aLive(new ModelStore(initialState(), false));
    const resolution = resolve(world, tenantsOwn);
    world.store.pending[0]?.see();
    world.store.putKey(aKey({ digest: TENANTS_OWN, userId: undefined, revoked: true }));
    world.store.deliver(world.live, 0);
    world.store.answersAtOnce = true;
    world.store.pending[0]?.answer();
    expect((await resolution).identity).toEqual({ kind: 'invalid', reason: 'revoked' });
    expect(await outcome(world, tenantsOwn)).toBe('revoked');
  });

  test('the first loaded entry is checked again after the last one is loaded', async () => {
    const world = aLive(new ModelStore(initialState(), false));
    const resolution = resolve(world, tenantsOwn);
    world.store.pending[0]?.answer();
    await settle();
    world.store.putKey(aKey({ digest: TENANTS_OWN, userId: undefined, revoked: true }));
    world.store.deliver(world.live, 0);
    world.store.answersAtOnce = true;
    for (const load of world.store.pending) load.answer();
    expect((await resolution).identity).toEqual({ kind: 'invalid', reason: 'revoked' });
  });

  test('the end of the sessions of an issuer removes them and no others, and rejects what was loaded before it', async () => {
    const world = aLive();
    const { store, live } = world;
    const state = store.at(store.position);
    const began = (ended: boolean) => new Map(state.sessions).set(SESSION, aSession({ issuerId: ISSUER, ended }));
    store.commit('session', SESSION, { sessions: began(false) });
    store.deliver(live, 0);
    expect([await outcome(world, developersToken), await outcome(world, adminsToken)]).toEqual(['proved', 'proved']);
    const before = store.position;
    store.commit('issuer_sessions', ISSUER, { sessions: began(true) });
    store.deliver(live, before);
    expect([await outcome(world, developersToken), await outcome(world, adminsToken)]).toEqual([
      'session_ended',
      'proved',
    ]);
    expect([store.loadsOf('session', SESSION), store.loadsOf('session', ADMIN_SESSION)]).toEqual([2, 1]);
  });

  test('a load that runs during the end of the sessions of an issuer never admits one, also if its snapshot is older', async () => {
    const world = aLive();
    const { store, live } = world;
    const state = store.at(store.position);
    const began = (ended: boolean) => new Map(state.sessions).set(SESSION, aSession({ issuerId: ISSUER, ended }));
    store.commit('session', SESSION, { sessions: began(false) });
    store.deliver(live, 0);
    const before = store.position;
    store.answersAtOnce = false;
    const resolved = outcome(world, developersToken);
    await settle();
    const early = store.pending.find(({ kind }) => kind === 'session');
    early?.see(before);
    store.commit('issuer_sessions', ISSUER, { sessions: began(true) });
    store.deliver(live, before);
    early?.answer();
    await settle();
    // The next load of the session still reads a standby that lags.
    const late = store.pending.find(({ kind }) => kind === 'session');
    late?.see(before);
    late?.answer();
    await settle();
    store.answersAtOnce = true;
    for (const load of store.pending) load.answer();
    expect(await resolved).toBe('session_ended');
    expect(store.loadsOf('session', SESSION)).toBe(3);
  });

  test('a new key is valid as soon as its change is delivered, although it was unknown before', async () => {
    const world = aLive();
    expect(await outcome(world, unknownKey)).toBe('unknown');
    world.store.putKey(aKey({ digest: digest(99), userId: undefined }));
    expect(await outcome(world, unknownKey)).toBe('unknown');
    world.store.deliver(world.live, 0);
    expect(await outcome(world, unknownKey)).toBe('proved');
  });

  test('a change of the signing keys has every token verified again', async () => {
    const world = aLive();
    await resolve(world, developersToken);
    const forged: VerifiedToken = { kind: 'invalid', reason: 'signature' };
    world.verifier.known.set('developer', forged);
    world.store.commit('signing_keys', '', {});
    world.store.deliver(world.live, 0);
    expect(await outcome(world, developersToken)).toBe('signature');
  });

  test('a token of a server whose clock is ahead is rejected until its time, and accepted from then on', async () => {
    const world = aLive();
    const early = { kind: 'token', token: 'early', digest: 'digest of early' } as const;
    const times = { validFromMs: NOW + 1000, validUntilMs: NOW + 5000 };
    world.verifier.known.set('early', { kind: 'valid', userId: DEVELOPER, sessionId: SESSION, ...times });
    expect(await outcome(world, early, NOW)).toBe('malformed');
    expect(await outcome(world, early, NOW + 999)).toBe('malformed');
    expect(await outcome(world, early, NOW + 1000)).toBe('proved');
    expect(world.verifier.verified).toBe(1);
  });

  test.each(['flush', 'forget'] as const)('after a %s nothing from before is used', async (how) => {
    const world = aLive();
    for (const credential of [owned, developersToken]) await resolve(world, credential);
    world.store.putKey(aKey({ revoked: true }));
    world.store.putSession(aSession({ ended: true }));
    if (how === 'flush') world.live.flush(world.store.position);
    else world.live.forget();
    expect(await outcome(world, owned)).toBe('revoked');
    expect(await outcome(world, developersToken)).toBe('session_ended');
    expect(world.verifier.verified).toBe(2);
  });

  test('after a fail-over to a standby that lagged, entries of the old server are dropped and those of the new one are used', async () => {
    const world = aLive();
    world.store.putUser(aUser({ roles: [roleName('analyst')] }));
    world.store.putTenant(aTenant({ settings: { default_model: 'lost' } }));
    world.store.deliver(world.live, 0);
    expect((await resolve(world, owned)).snapshot?.own?.settings.default_model).toBe('lost');
    world.store.failOver(1);
    world.live.flush(1);
    const { identity, snapshot } = await resolve(world, owned);
    expect(identity).toMatchObject({ principal: { owner: { roles: ['analyst'] } } });
    expect(snapshot?.own?.settings.default_model).toBeUndefined();
  });
});

describe('a fault, and never a denial or an allow', () => {
  test('if the store does not answer; the next request loads again', async () => {
    const world = aLive(new ModelStore(initialState(), false));
    const resolution = resolve(world, owned);
    world.store.pending[0]?.fail(new Fault('connection refused'));
    await expect(resolution).rejects.toThrow(Fault);
    world.store.answersAtOnce = true;
    expect(await outcome(world, owned)).toBe('proved');
    expect(world.live.stats()).toMatchObject({ fillsInFlight: 0, waiting: 0 });
  });

  test('if one of several loads fails', async () => {
    const world = aLive(new ModelStore(initialState(), false));
    const resolution = resolve(world, owned);
    world.store.pending[0]?.answer();
    await settle();
    world.store.pending.find((load) => load.kind === 'tenant')?.fail(new Error('a bug'));
    for (const load of world.store.pending) load.answer();
    await expect(resolution).rejects.toThrow(Fault);
  });

  test('if loaded entries are older than known changes in three rounds', async () => {
    const world = aLive();
    world.live.flush(10);
    await expect(resolve(world, owned)).rejects.toThrow(Fault);
    expect(world.store.loadsOf('key', OWNED)).toBe(9);
    expect(world.live.stats().maps.keys.rejectedFills).toBe(9);
  });

  test('if too many loads of unknown keys wait, and only for the client with most of them', async () => {
    const world = aLive(new ModelStore(initialState(), false));
    const { permits, maxWaiting } = LIMITS.unseen;
    const flood = Array.from({ length: permits + maxWaiting - 1 }, (_, index) =>
      world.live.resolve({ kind: 'api_key', digest: digest(index + 1000) }, undefined, NOW, `10.0.0.${index % 2}`),
    );
    const answers = Promise.allSettled(flood);
    const last = world.live.resolve({ kind: 'api_key', digest: digest(1) }, undefined, NOW, '10.0.1.1');
    const over = world.live.resolve({ kind: 'api_key', digest: digest(2) }, undefined, NOW, '10.0.1.2');
    await settle();
    expect(world.live.stats().loads.unseen).toMatchObject({ inFlight: permits, waiting: maxWaiting, rejected: 1 });
    world.store.answersAtOnce = true;
    for (const load of world.store.pending) load.answer();
    expect((await answers).filter(({ status }) => status === 'rejected')).toHaveLength(1);
    for (const answer of await Promise.all([last, over])) expect(answer.identity.kind).toBe('proved');
    expect(world.live.stats()).toMatchObject({ fillsInFlight: 0, waiting: 0 });
  });
});

describe('a resolution by id', () => {
  test('resolves a user as after a login, and a key as after its use, and respects their status', async () => {
    const world = aLive();
    expect((await world.live.resolveUser(DEVELOPER, undefined, NOW)).identity).toMatchObject({
      kind: 'proved',
      principal: { kind: 'user', id: DEVELOPER, sessionId: undefined },
    });
    expect((await world.live.resolveUser(ADMINISTRATOR, AWAY, NOW)).snapshot?.effective?.id).toBe(AWAY);
    expect((await world.live.resolveKey(OWNED, undefined, NOW)).identity).toMatchObject({
      principal: { id: keyId(1) },
    });
    world.store.putUser(aUser({ status: 'deactivated' }));
    world.store.deliver(world.live, 0);
    expect((await world.live.resolveUser(DEVELOPER, undefined, NOW)).identity).toEqual({
      kind: 'invalid',
      reason: 'user_deactivated',
    });
    expect((await world.live.resolveKey(OWNED, undefined, NOW)).identity).toEqual({
      kind: 'invalid',
      reason: 'user_deactivated',
    });
    expect((await world.live.resolveUser(userId(99), undefined, NOW)).identity).toEqual({
      kind: 'invalid',
      reason: 'user_missing',
    });
  });
});

describe('bounds', () => {
  test('the keys, users, sessions and tokens never exceed the configured number; tenants a tenth of it, with a minimum of 1,000', async () => {
    const world = aLive(new ModelStore(initialState()), { maxCredentials: 10 });
    for (let index = 100; index < 130; index++) {
      world.store.putUser(aUser({ id: userId(index), tenantId: tenantId(`t${index}`) }));
      world.store.putTenant(aTenant({ id: tenantId(`t${index}`) }));
      world.store.putSession(aSession({ id: sessionId(index), userId: userId(index) }));
      world.store.putKey(aKey({ digest: digest(index), userId: userId(index), tenantId: tenantId(`t${index}`) }));
      world.verifier.known.set(`t${index}`, {
        kind: 'valid',
        userId: userId(index),
        sessionId: sessionId(index),
        validFromMs: 0,
        validUntilMs: NOW * 2,
      });
      expect(await outcome(world, { kind: 'api_key', digest: digest(index) })).toBe('proved');
      expect(await outcome(world, { kind: 'token', token: `t${index}`, digest: `d${index}` })).toBe('proved');
    }
    const { maps } = world.live.stats();
    expect({ ...maps }).toMatchObject({
      keys: { size: 10 },
      users: { size: 10 },
      sessions: { size: 10 },
      tokens: { size: 10 },
      tenants: { size: 30 },
    });
    expect(await outcome(world, { kind: 'api_key', digest: digest(100) })).toBe('proved');
  });
});
