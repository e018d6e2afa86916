import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CredentialResolver } from '../../src/credential-cache/resolution.ts';
import type { Allow, Principal } from '../../src/decision/model.ts';
import { buildRouteTable, parseRoute, type RouteSpec } from '../../src/decision/routes.ts';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, parseRoleName, parseTenantId } from '../../src/domain/ids.ts';
import { type CheckHandlerParts, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { Limiter } from '../../src/extauthz/ports.ts';
import { createRandomPool } from '../../src/extauthz/random-pool.ts';
import { UpstreamHeaders, type UpstreamHeadersParts } from '../../src/extauthz/upstream-headers.ts';
import { OPTIONAL_CLAIMS, UpstreamTokens } from '../../src/identity/upstream-token.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { type SigningRing, signingRing } from '../identity/support/signing-ring.ts';
import { readAnswer } from './support/definition.ts';
import {
  builtinRoutes,
  littleWorld,
  NOW_MS,
  OWNED_KEY,
  OWNED_KEY_ID,
  present,
  ROUTE_LINES,
  USER,
  USER_ID,
} from './support/little-world.ts';
import { checkRequest, type RequestSpec } from './support/requests.ts';

const world = littleWorld();
const TTL_SECONDS = 300;
const BODY = JSON.stringify({ model: 'llama-3-70b', messages: [], max_tokens: 10 });
const bearer = (text: string): NonNullable<RequestSpec['headers']> => [
  ['authorization', `Bearer ${text}`],
  ['content-type', 'application/json'],
];
const CHAT = { headers: bearer(world.ownedKey), body: BODY };

const ALLOW: Allow = {
  kind: 'allow',
  route: present(ROUTE_LINES.find(({ template }) => template === '/v1/chat/completions')),
  principal: USER,
  roles: USER.roles,
  tenant: present(world.snapshot.own),
  resources: [],
  model: undefined,
  maxTokens: undefined,
  defaultModel: undefined,
  askedTokens: undefined,
  askedChoices: 1,
  promptTokens: 0,
  inlineFiles: 0,
};

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

let users = 0;
const anotherUser = (): Principal => ({ ...USER, id: makeId('usr', ++users, Buffer.alloc(10)) });

let ring: SigningRing;
beforeAll(async () => {
  ring = await signingRing(NOW_MS);
});

function headersOf(parts: Partial<UpstreamHeadersParts> = {}): UpstreamHeaders {
  const { keys } = ring;
  const claims = { issuer: 'https://ai.example.com', audience: 'models', accessAudience: 'platform' };
  return new UpstreamHeaders({
    tokens: new UpstreamTokens({ keys, ...claims, ttlSeconds: TTL_SECONDS, claims: OPTIONAL_CLAIMS }),
    header: 'x-postern-token',
    isPublished: (kid) => keys.isPublished(kid),
    random: createRandomPool(),
    ...parts,
  });
}

interface Stand {
  readonly ask: (spec?: RequestSpec) => Promise<ReturnType<typeof readAnswer>>;
  /** Whether a check waits for something. */
  readonly waits: (spec?: RequestSpec) => boolean;
  readonly time: { nowMs: number };
  readonly outcomes: CheckOutcome[];
}

function stand(upstreamHeaders: UpstreamHeaders, parts: Partial<CheckHandlerParts> = {}): Stand {
  const time = { nowMs: NOW_MS };
  const outcomes: CheckOutcome[] = [];
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    observer: { observe: (outcome) => outcomes.push(outcome) },
    trustedHops: 0,
    forwardCredential: false,
    now: () => time.nowMs,
    upstreamHeaders,
    ...parts,
  });
  return {
    ask: async (spec = CHAT) => readAnswer(await gate(checkRequest(spec))),
    waits: (spec = CHAT) => gate(checkRequest(spec)) instanceof Promise,
    time,
    outcomes,
  };
}

/** A resolver that proves one principal for every credential. */
function proving(principal: () => Principal): CredentialResolver {
  return {
    resolve: () => ({ identity: { kind: 'proved', principal: principal() }, snapshot: world.snapshot }),
  };
}

async function verified(token = '', nowMs = NOW_MS): Promise<Readonly<Record<string, unknown>>> {
  const keys = createLocalJWKSet(JSON.parse(JSON.stringify({ keys: ring.keys.published() })));
  const currentDate = new Date(nowMs);
  return (await jwtVerify(token, keys, { audience: 'models', typ: 'postern-upstream+jwt', currentDate })).payload;
}

describe('an allow with a token for the upstream', () => {
  test('sets the header once, by overwriting, and does not remove it', async () => {
    const answer = await stand(headersOf()).ask({
      ...CHAT,
      headers: [...CHAT.headers, ['x-postern-token', 'eyJmine'], ['x_postern_token', 'eyJmine']],
      form: 'raw',
    });
    expect(answer.code).toBe(0);
    const set = answer.options.filter(({ header }) => header.key === 'x-postern-token');
    expect(set).toMatchObject([{ append: { value: false }, append_action: 2 }]);
    expect(answer.removed).not.toContain('x-postern-token');
    expect(answer.removed).toEqual(expect.arrayContaining(['authorization', 'x_postern_token', 'x.postern.token']));
    expect(new Set(answer.removed).size).toBe(answer.removed.length);
    expect(await verified(answer.headers['x-postern-token'])).toMatchObject({
      sub: USER_ID,
      client_id: OWNED_KEY_ID,
      act: { sub: OWNED_KEY_ID },
      tenant_id: 'acme',
      roles: ['developer'],
      scope: 'chat:* models:read',
    });
    expect(answer.headers).toMatchObject({ 'x-postern-subject': OWNED_KEY_ID, 'x-postern-tenant': 'acme' });
  });

  test('replaces the credential of the client where the header is authorization', async () => {
    for (const forwardCredential of [false, true]) {
      const answer = await stand(headersOf({ header: 'authorization' }), { forwardCredential }).ask();
      const [scheme, token] = (answer.headers['authorization'] ?? '').split(' ');
      expect([answer.code, scheme]).toEqual([0, 'Bearer']);
      expect(await verified(token)).toMatchObject({ sub: USER_ID });
      expect(answer.removed).not.toContain('authorization');
      expect(answer.removed).toContain('x-postern-token');
      expect(answer.removed.includes('x-api-key')).toBe(!forwardCredential);
    }
  });

  test('also has the headers of a rate limit and of the reservation', async () => {
    const rate = { limit: 100, remaining: 99, resetSeconds: 30, windowSeconds: 60 };
    const limited = { kind: 'admitted', reservation: 'ab'.repeat(16), rate } as const;
    const answer = await stand(headersOf(), { limiter: { admit: () => limited, release: () => undefined } }).ask();
    expect(answer.headers['x-postern-token']).toMatch(/^eyJ/);
    expect(answer.added).toMatchObject({ 'x-ratelimit-remaining-requests': '99' });
    expect(answer.metadata).toMatchObject({ settles: 'true', reservation: 'ab'.repeat(16) });
  });

  test('is not on public paths, not in denials, and not on a route that opts out: there, the header is removed', async () => {
    const spec: RouteSpec = { method: 'POST', path: '/v1/plain', permission: 'chat:write', upstream_token: false };
    const parsed = parseRoute(spec);
    const built = buildRouteTable([parsed.kind === 'route' ? parsed.route : expect.fail('the route is valid')]);
    const routes = built.kind === 'table' ? built.table : expect.fail('the table is valid');
    for (const header of ['x-postern-token', 'authorization'] as const) {
      const { ask } = stand(headersOf({ header }), { routes });
      const plain = await ask({ ...CHAT, path: '/v1/plain' });
      expect([plain.code, plain.headers[header]]).toEqual([0, undefined]);
      expect(plain.removed).toEqual(expect.arrayContaining(['x-postern-token', 'authorization']));
      const published = await ask({ ...CHAT, method: 'GET', path: '/.well-known/openid-configuration' });
      expect([published.code, published.options]).toEqual([0, []]);
      expect(published.removed).toContain('x-postern-token');
      const denied = await ask({ ...CHAT, path: '/v1/embeddings' });
      expect([denied.kind, denied.headers[header]]).toEqual(['denied', undefined]);
    }
  });

  test('without tokens for the upstream, the header of a client is removed', async () => {
    const gate = createCheckHandler({
      routes: builtinRoutes(),
      resolver: world.resolver,
      observer: { observe: () => undefined },
      trustedHops: 0,
      forwardCredential: true,
      now: () => NOW_MS,
    });
    const answer = readAnswer(await gate(checkRequest(CHAT)));
    expect([answer.code, answer.headers['x-postern-token']]).toEqual([0, undefined]);
    expect(answer.removed).toEqual(expect.arrayContaining(['x-postern-token', 'x_postern_token', 'x.postern.token']));
  });
});

describe('a token', () => {
  test('serves every request of its principal, without a wait, until half of its life is over', async () => {
    const { ask, waits, time } = stand(headersOf());
    const first = (await ask()).headers['x-postern-token'];
    for (const afterMs of [0, 1000, (TTL_SECONDS * 1000) / 2 - 1]) {
      time.nowMs = NOW_MS + afterMs;
      expect(waits()).toBe(false);
      expect((await ask()).headers['x-postern-token']).toBe(first);
    }
    time.nowMs = NOW_MS + (TTL_SECONDS * 1000) / 2;
    expect(waits()).toBe(true);
    const second = (await ask()).headers['x-postern-token'];
    expect(second).not.toBe(first);
    expect(await verified(second, time.nowMs)).toMatchObject({ exp: time.nowMs / 1000 + TTL_SECONDS });
    // After a clock that was ahead was set back.
    time.nowMs = NOW_MS - TTL_SECONDS * 1000;
    expect(waits()).toBe(true);
  });

  test('is signed once for requests that come together', async () => {
    const { ask } = stand(headersOf());
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask()));
    expect(new Set(answers.map(({ headers }) => headers['x-postern-token'])).size).toBe(1);
  });

  test('ends its use with the object of its principal: other roles, another owner, other scopes', async () => {
    const auditor = present(parseRoleName('auditor'));
    let principal: Principal = USER;
    const { ask, waits } = stand(headersOf(), { resolver: proving(() => principal) });
    const roles = async (): Promise<unknown> => (await verified((await ask()).headers['x-postern-token']))['roles'];
    expect(await roles()).toEqual(['developer']);
    expect(waits()).toBe(false);
    principal = { ...USER, roles: [...USER.roles, auditor] };
    expect(await roles()).toEqual(['developer', 'auditor']);
    principal = { ...OWNED_KEY };
    expect(waits()).toBe(true);
    principal = { ...OWNED_KEY, owner: undefined };
    expect(waits()).toBe(true);
  });

  test('names the effective tenant, and is kept for eight tenants of one principal', async () => {
    const headers = headersOf();
    const askFor = (index: number) => {
      const tenant = { ...present(world.snapshot.own), id: present(parseTenantId(`tenant-${index}`)) };
      return headers.of({ ...ALLOW, tenant }, NOW_MS);
    };
    const eight = [0, 1, 2, 3, 4, 5, 6, 7];
    const signed = await Promise.all(eight.map(askFor));
    const tokens = signed.map((field) => /eyJ[\w.-]+/.exec(field.toString('latin1'))?.[0]);
    const tenants = await Promise.all(tokens.map(async (token) => (await verified(token))['tenant_id']));
    expect(tenants).toEqual(eight.map((index) => `tenant-${index}`));
    expect(eight.map(askFor)).toEqual(signed);
    expect(askFor(8)).toBeInstanceOf(Promise);
    // The oldest gave its place.
    expect([askFor(1), askFor(8)]).toEqual([signed[1], expect.any(Object)]);
    expect(askFor(0)).toBeInstanceOf(Promise);
  });

  test('leaves the memory when it is too old to be used again, and when all tokens take more than 64 MiB', async () => {
    let madeAtMs = NOW_MS;
    const sign = async () => 'eyJ';
    const tokens = { lifetimeMs: 300_000, prepare: () => ({ kid: 'kid', length: 8192, sign }) };
    const headers = headersOf({ tokens, isPublished: () => true });
    const askAs = (principal: Principal) => headers.of({ ...ALLOW, principal }, madeAtMs);
    const [first, second] = [anotherUser(), anotherUser()];
    await askAs(first);
    for (let i = 0; i < 10_000; i++) await askAs(anotherUser());
    expect(headers.kept.bytes).toBeLessThanOrEqual(64 * 1024 * 1024);
    expect(headers.kept.principals).toBeGreaterThan(7000);
    expect(askAs(first)).toBeInstanceOf(Promise);
    madeAtMs += 150_000;
    await askAs(second);
    expect(headers.kept).toEqual({ principals: 1, bytes: 8192 + 512 });
    expect(askAs(second)).not.toBeInstanceOf(Promise);
  });

  test('keeps no key that the credential cache has dropped, so that large constraints do not fill the memory', async () => {
    const tokens = headersOf();
    const before = heapBytes();
    for (let i = 0; i < 300; i++) {
      const note = Buffer.alloc(100_000, String(i)).toString('latin1');
      await tokens.of({ ...ALLOW, principal: { ...OWNED_KEY, metadata: { note } } }, NOW_MS);
    }
    expect(tokens.kept.principals).toBe(300);
    expect(heapBytes() - before).toBeLessThan(10_000_000);
  });

  test('of a key that is no longer published is replaced, and one of a retired key is not', async () => {
    ring = await signingRing(NOW_MS);
    const { ask, waits } = stand(headersOf());
    const first = (await ask()).headers['x-postern-token'];
    await ring.rotate();
    expect((await ask()).headers['x-postern-token']).toBe(first);
    const { kid } = ring.keys.current();
    await ring.remove(kid);
    expect(waits()).toBe(true);
    const second = (await ask()).headers['x-postern-token'];
    expect(await verified(second)).toMatchObject({ sub: USER_ID });
  });
});

describe('without its token, a check is 503 unavailable', () => {
  /** Signatures that the test ends. */
  function heldSignatures(): {
    readonly tokens: UpstreamHeadersParts['tokens'];
    readonly fail: (error: Error) => void;
  } {
    const held: ((error: Error) => void)[] = [];
    const sign = () => new Promise<string>((_resolve, reject) => held.push(reject));
    return {
      tokens: { lifetimeMs: 300_000, prepare: () => ({ kid: 'kid', length: 600, sign }) },
      fail: (error) => {
        for (const reject of held.splice(0)) reject(error);
      },
    };
  }

  /** Limits that count what they admit. */
  function counting(): { readonly limiter: Limiter; readonly admitted: () => number } {
    let admitted = 0;
    return {
      limiter: {
        admit: () => {
          admitted++;
          return { kind: 'admitted', reservation: undefined, rate: undefined };
        },
        release: () => undefined,
      },
      admitted: () => admitted,
    };
  }

  test('without a signing key, on the routes that need the token only, and takes nothing of the limits', async () => {
    const { limiter, admitted } = counting();
    const parsed = parseRoute({ method: 'POST', path: '/v1/plain', permission: 'chat:write', upstream_token: false });
    const built = buildRouteTable([parsed.kind === 'route' ? parsed.route : expect.fail('the route is valid')]);
    const tokens = new UpstreamTokens({
      keys: {
        current() {
          throw new Fault('no signing key exists yet');
        },
      },
      issuer: 'https://ai.example.com',
      audience: 'models',
      accessAudience: 'platform',
      ttlSeconds: TTL_SECONDS,
      claims: OPTIONAL_CLAIMS,
    });
    const routes = built.kind === 'table' ? built.table : expect.fail('the table is valid');
    const { ask, outcomes } = stand(headersOf({ tokens }), { routes, limiter });
    const answer = await ask();
    expect([answer.kind, answer.status, answer.body['code'], admitted()]).toEqual(['denied', 503, 'unavailable', 0]);
    expect(outcomes).toMatchObject([{ code: 'unavailable', error: { message: 'no signing key exists yet' } }]);
    expect((await ask({ ...CHAT, path: '/v1/plain' })).code).toBe(0);
    expect(admitted()).toBe(1);
  });

  test('if the signature fails, and the next check tries again', async () => {
    const { tokens, fail } = heldSignatures();
    const { limiter, admitted } = counting();
    const { ask, waits } = stand(headersOf({ tokens, isPublished: () => true }), { limiter });
    const both = [ask(), ask()];
    fail(new Fault('a token for the upstream could not be signed'));
    for (const answer of await Promise.all(both)) expect([answer.status, answer.kind]).toEqual([503, 'denied']);
    expect([waits(), admitted()]).toEqual([true, 0]);
  });

  test('if the signatures of its tenant wait in half of the queue, which others may still use', () => {
    const { tokens } = heldSignatures();
    const headers = headersOf({ tokens, isPublished: () => true });
    const other = { ...present(world.snapshot.own), id: present(parseTenantId('other')) };
    const askAs = (tenant: Allow['tenant']) => headers.of({ ...ALLOW, tenant, principal: anotherUser() }, NOW_MS);
    const begun: unknown[] = [];
    expect(() => {
      for (let i = 0; i < 5000; i++) begun.push(askAs(ALLOW.tenant));
    }).toThrow(/too many tokens for the upstream wait for their signature/);
    expect(begun.length).toBeGreaterThan(2000);
    expect(begun.length).toBeLessThan(2100);
    expect(askAs(other)).toBeInstanceOf(Promise);
  });
});
