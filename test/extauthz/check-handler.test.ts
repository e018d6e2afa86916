import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Resolution } from '../../src/credential-cache/resolution.ts';
import { compileGrant } from '../../src/decision/compile.ts';
import type { KeyPrincipal } from '../../src/decision/model.ts';
import { Fault } from '../../src/domain/errors.ts';
import { makeId } from '../../src/domain/ids.ts';
import { type CheckHandler, type CheckHandlerParts, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { UnaryCall } from '../../src/extauthz/grpc/methods.ts';
import type { Limiter } from '../../src/extauthz/ports.ts';
import type { BudgetState, LimitDecision } from '../../src/metering/admission.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { runs } from '../support/properties.ts';
import { readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld, NOW_MS, OWNED_KEY_ID, TENANT_KEY, USER_ID } from './support/little-world.ts';
import { checkRequest, type RequestSpec } from './support/requests.ts';

const world = littleWorld();
const routes = builtinRoutes();

interface Watched {
  readonly gate: CheckHandler;
  readonly outcomes: CheckOutcome[];
}

function watched(parts: Partial<CheckHandlerParts> = {}): Watched {
  const outcomes: CheckOutcome[] = [];
  const gate = createCheckHandler({
    routes,
    resolver: world.resolver,
    observer: { observe: (outcome) => outcomes.push(outcome) },
    trustedHops: 0,
    forwardCredential: false,
    now: () => NOW_MS,
    ...parts,
  });
  return { gate, outcomes };
}

const { gate } = watched();

function now(answer: Buffer | Promise<Buffer>): ReturnType<typeof readAnswer> {
  if (answer instanceof Promise) throw new Error('a warm check waits for nothing');
  return readAnswer(answer);
}

const BODY = JSON.stringify({ model: 'llama-3-70b', messages: [], max_tokens: 10 });
const bearer = (text: string): NonNullable<RequestSpec['headers']> => [
  ['authorization', `Bearer ${text}`],
  ['content-type', 'application/json'],
];
const CHAT = { headers: bearer(world.ownedKey), body: BODY };

describe('the Messages API', () => {
  const target = fc
    .tuple(
      fc.constantFrom(
        '/v1/messages',
        '/v1/message',
        '/v1/messagesx',
        '/V1/messages',
        '//v1/messages',
        '/v2/v1/messages',
        '/v1/models',
      ),
      fc.constantFrom('', '/', '?', '?beta=true', '/count_tokens', '/batches/b?limit=1', '/..', '%2f', 'x', '#', ';a'),
    )
    .map((parts) => parts.join(''));

  test('every denial at /v1/messages and below, and no other, has the shape for Anthropic’s SDKs', () => {
    const failing = watched({
      resolver: {
        resolve() {
          throw new Error('no');
        },
      },
    });
    fc.assert(
      fc.property(target, fc.constantFrom(gate, failing.gate), (path, deciding) => {
        const answer = now(deciding(checkRequest({ path, method: 'GET' })));
        const isMessages = /^\/v1\/messages(?:[/?]|$)/.test(path);
        expect(answer.code).not.toBe(0);
        expect(answer.body).toMatchObject({ type: isMessages ? 'error' : expect.stringMatching(/^https:/) });
        expect(answer.headers['request-id']).toBe(isMessages ? answer.headers['x-request-id'] : undefined);
      }),
      { numRuns: runs(100) },
    );
  });

  test('an allowed request’s answer has request-id beside x-request-id', () => {
    const { added } = now(gate(checkRequest({ ...CHAT, path: '/v1/messages?beta=true' })));
    expect(added['request-id']).toBe(added['x-request-id']);
    expect(now(gate(checkRequest(CHAT))).added['request-id']).toBeUndefined();
  });
});

describe('an allowed check', () => {
  test('of a key has its identity for the upstream', () => {
    for (const form of ['map', 'raw'] as const) {
      const answer = now(gate(checkRequest({ ...CHAT, form })));
      expect([answer.code, answer.kind]).toEqual([0, 'ok']);
      expect(answer.headers).toMatchObject({
        'x-postern-subject': OWNED_KEY_ID,
        'x-postern-user-id': USER_ID,
        'x-postern-max-tokens': '10',
      });
      expect(answer.metadata).toMatchObject({ model: 'llama-3-70b', tenant: 'acme' });
    }
  });

  test('without a model has the tenant’s default model', () => {
    expect(now(gate(checkRequest({ ...CHAT, body: '{}' }))).headers['x-postern-default-model']).toBe('llama-3-8b');
  });

  test('on a public route has no identity, with any credential or none', () => {
    for (const headers of [[], bearer('psk_x'), bearer(world.ownedKey)] as const) {
      const answer = now(gate(checkRequest({ method: 'GET', path: '/v1/iam/users', headers })));
      expect([answer.code, answer.kind, answer.options]).toEqual([0, 'ok', []]);
    }
  });

  test('has spoofed identity headers overwritten or removed, in every spelling', () => {
    const spoofed = [
      'x-postern-subject',
      'X-Postern-Roles',
      'x_postern_user_id',
      'x.postern.tenant',
      'x-postern_evil',
      'x-postern-default-model',
    ];
    const headers = [...CHAT.headers, ...spoofed.map((name) => [name, 'root'] as const)];
    const answer = now(gate(checkRequest({ ...CHAT, headers, form: 'raw' })));
    const touched = [...Object.keys(answer.headers), ...answer.removed];
    expect(spoofed.map((name) => name.toLowerCase()).filter((name) => !touched.includes(name))).toEqual([]);
    expect(Object.values(answer.headers)).not.toContain('root');
  });
});

describe('a header that states another request, or a client that needs no check,', () => {
  const claims: NonNullable<RequestSpec['headers']> = [
    ['host', 'localhost'],
    ['forwarded', 'for=127.0.0.1;host=localhost;proto=https'],
    ['x-forwarded-for', '127.0.0.1'],
    ['x-forwarded-host', 'localhost'],
    ['x-forwarded-method', 'GET'],
    ['x-forwarded-port', '443'],
    ['x-forwarded-prefix', '/v1/auth'],
    ['x-forwarded-proto', 'https'],
    ['x-forwarded-uri', '/v1/auth/login'],
    ['x-envoy-original-path', '/v1/auth/login'],
    ['x-http-method-override', 'OPTIONS'],
    ['x-original-method', 'OPTIONS'],
    ['x-original-url', '/v1/auth/login'],
    ['x-rewrite-url', '/docs'],
    ['x-real-ip', '127.0.0.1'],
    ['x-auth-request-redirect', '/v1/auth/login'],
    ['user-agent', 'kube-probe/1.36'],
  ];

  test.each<[string, RequestSpec]>([
    ['an allowed request', CHAT],
    ['one without a credential', { ...CHAT, headers: [] }],
    ['one with a made-up key', { ...CHAT, headers: bearer('psk_x') }],
    ['one without a route', { ...CHAT, path: '/v1/unknown' }],
    ['one without the permission', { ...CHAT, method: 'GET', path: '/v1/agents', body: '' }],
    ['one that a policy denies', { ...CHAT, body: '{"model":"secret-1"}' }],
  ])('changes no decision: %s', (_name, spec) => {
    const outcomeOf = (headers: NonNullable<RequestSpec['headers']>, form: 'map' | 'raw') => {
      const answer = now(gate(checkRequest({ ...spec, headers, form })));
      return [answer.code, answer.kind, answer.status, answer.kind === 'ok' ? undefined : answer.body['code']];
    };
    const own = spec.headers ?? [];
    for (const form of ['map', 'raw'] as const) {
      const plain = outcomeOf(own, form);
      expect(outcomeOf([...own, ...claims], form)).toEqual(plain);
      for (const claim of claims) expect([claim, outcomeOf([...own, claim], form)]).toEqual([claim, plain]);
    }
  });
});

describe('a denied check', () => {
  test.each<[string, RequestSpec, number, string]>([
    ['no credential', { ...CHAT, headers: [] }, 401, 'missing_credential'],
    ['a made-up key', { ...CHAT, headers: bearer('psk_x') }, 401, 'invalid_credential'],
    [
      'two credentials',
      { ...CHAT, headers: [...bearer(world.ownedKey), ['Authorization', 'Bearer x']], form: 'raw' },
      401,
      'invalid_credential',
    ],
    ['no route', { ...CHAT, path: '/v1/unknown' }, 403, 'no_route'],
    ['a path with dots', { ...CHAT, path: '/v1/auth/../chat/completions' }, 400, 'malformed_path'],
    ['an empty path', { ...CHAT, path: '' }, 400, 'malformed_path'],
    ['a policy', { ...CHAT, body: '{"model":"secret-1"}' }, 403, 'denied_by_policy'],
    ['a missing permission', { ...CHAT, method: 'GET', path: '/v1/agents', body: '' }, 403, 'insufficient_permission'],
    ['a broken body', { ...CHAT, body: '{' }, 400, 'malformed_body'],
    ['a cut body', { ...CHAT, size: 100_000 }, 413, 'body_too_large'],
    [
      'a body nested 100,000 deep',
      { ...CHAT, body: `{"messages":${'['.repeat(100_000)}${']'.repeat(100_000)}}` },
      400,
      'malformed_body',
    ],
    ['a header of 10 MB', { ...CHAT, headers: bearer('a'.repeat(10_000_000)) }, 401, 'invalid_credential'],
    ['a path of 10 MB', { ...CHAT, path: `/${'a'.repeat(10_000_000)}` }, 403, 'no_route'],
    [
      'another tenant',
      { ...CHAT, headers: [...bearer(world.ownedKey), ['x-tenant-id', 'globex']] },
      403,
      'tenant_mismatch',
    ],
    ['too many tokens', { ...CHAT, body: '{"model":"m","max_tokens":1001}' }, 400, 'max_tokens_exceeded'],
  ])('%s', (_name, spec, status, code) => {
    const answer = now(gate(checkRequest(spec)));
    expect(answer.code).not.toBe(0);
    expect([answer.status, answer.body['code']]).toEqual([status, code]);
    expect(answer.metadata['code']).toBe(code);
  });

  test('has malformed_request for a message that is cut anywhere', () => {
    const whole = checkRequest(CHAT);
    for (let length = 0; length < whole.length; length++) {
      const answer = now(gate(whole.subarray(0, length)));
      expect(answer.code).not.toBe(0);
      expect([answer.status, answer.body['code']]).toEqual([400, 'malformed_request']);
    }
  });

  test('random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const answer = now(gate(Buffer.from(bytes)));
        expect(answer.code).not.toBe(0);
        expect(answer.kind).toBe('denied');
      }),
      { numRuns: runs(500) },
    );
  });
});

describe('a fault is 503, never allow and never 401', () => {
  const bug = (): never => {
    throw new TypeError('cannot read properties of undefined');
  };
  const never: Promise<Resolution> = new Promise(() => {});
  const withoutProof = { identity: { kind: 'proved', principal: TENANT_KEY }, snapshot: undefined } as const;

  test.each<[string, Partial<CheckHandlerParts>]>([
    [
      'the resolver throws a fault',
      {
        resolver: {
          resolve: () => {
            throw new Fault('the store is away');
          },
        },
      },
    ],
    ['the resolver has a bug', { resolver: { resolve: bug } }],
    ['the resolver rejects', { resolver: { resolve: () => Promise.reject(new Fault('the store is away')) } }],
    ['the resolver rejects with no error at all', { resolver: { resolve: () => Promise.reject(undefined) } }],
    ['the resolver never answers', { resolver: { resolve: () => never }, maxWaitMs: 5 }],
    ['the world is missing', { resolver: { resolve: () => withoutProof } }],
    ['the clock has a bug', { now: bug }],
    ['randomness fails', { random: { take: bug } }],
    ['the observer has a bug too', { resolver: { resolve: bug }, observer: { observe: bug } }],
  ])('%s', async (_name, parts) => {
    const answer = readAnswer(await watched(parts).gate(checkRequest(CHAT)));
    expect(answer.code).toBe(14);
    expect([answer.status, answer.body['code'], answer.headers['retry-after']]).toEqual([503, 'unavailable', '1']);
  });

  test('only the observer gets the cause', async () => {
    const cause = new Fault('password=hunter2');
    const { gate: faulty, outcomes } = watched({ resolver: { resolve: () => Promise.reject(cause) } });
    const bytes = await faulty(checkRequest(CHAT));
    expect(outcomes).toMatchObject([{ code: 'unavailable', error: cause, decision: undefined }]);
    expect(bytes.includes('hunter2')).toBe(false);
  });

  test('a fault of one request does not affect the next', () => {
    let calls = 0;
    const flaky = watched({
      resolver: { resolve: (...asked) => (++calls === 1 ? bug() : world.resolver.resolve(...asked)) },
    });
    expect(now(flaky.gate(checkRequest(CHAT))).code).toBe(14);
    expect(now(flaky.gate(checkRequest(CHAT))).code).toBe(0);
  });
});

describe('the observer of checks', () => {
  test('gets each outcome once, with its request ids', () => {
    const { gate: seen, outcomes } = watched();
    const headers = [...CHAT.headers, ['x-request-id', 'abc'] as const];
    const answer = now(seen(checkRequest({ ...CHAT, headers })));
    now(seen(checkRequest({ ...CHAT, headers: [] })));
    now(seen(checkRequest({ path: '/docs' })));
    now(seen(Buffer.from('?')));
    expect(outcomes.map(({ code }) => code)).toEqual(['allow', 'missing_credential', 'public', 'malformed_request']);
    expect(outcomes[0]).toMatchObject({ clientRequestId: 'abc', decision: { kind: 'allow' } });
    for (const { tookMs } of outcomes) expect(tookMs).toBeGreaterThanOrEqual(0);
    expect(outcomes[0]?.requestId).toBe(answer.metadata['request_id']);
  });

  test('cannot change an answer by failing', () => {
    const broken = watched({
      observer: {
        observe: () => {
          throw new Error('disk full');
        },
      },
    });
    expect(now(broken.gate(checkRequest(CHAT))).code).toBe(0);
    expect(now(broken.gate(checkRequest({ ...CHAT, headers: [] }))).status).toBe(401);
  });
});

test('a check without cached data waits for its lookups, and has the same decision as one with cached data', async () => {
  const cold = watched({ resolver: { resolve: async (...asked) => world.resolver.resolve(...asked) } });
  const answer = cold.gate(checkRequest(CHAT));
  expect(answer).toBeInstanceOf(Promise);
  expect(readAnswer(await answer).headers['x-postern-subject']).toBe(OWNED_KEY_ID);
});

/** Limits that only admit. */
const limiterOf = (admit: Limiter['admit']): Limiter => ({ admit, release: () => undefined });

describe('limits', () => {
  const RATE = { limit: 60, remaining: 7, resetSeconds: 12, windowSeconds: 60 };
  const admitted: LimitDecision = { kind: 'admitted', reservation: 'cd'.repeat(16), rate: RATE };

  test('are consulted only for requests that the decision allows', () => {
    let asked = 0;
    const { gate } = watched({
      limiter: limiterOf(() => {
        asked += 1;
        return admitted;
      }),
    });
    now(gate(checkRequest({ headers: [] })));
    now(gate(checkRequest({ method: 'GET', path: '/v1/iam/users' })));
    now(gate(checkRequest({ ...CHAT, body: JSON.stringify({ model: 'secret-1' }) })));
    expect(asked).toBe(0);
    const answer = now(gate(checkRequest(CHAT)));
    expect([asked, answer.code, answer.metadata['reservation']]).toEqual([1, 0, 'cd'.repeat(16)]);
    expect(answer.added['x-ratelimit-remaining-requests']).toBe('7');
  });

  test('reject with 429, Retry-After, and the rate limit headers', () => {
    const { gate, outcomes } = watched({
      limiter: limiterOf(() => ({
        kind: 'refused',
        code: 'rate_limit_exceeded',
        detail: 'Too many.',
        rate: { ...RATE, remaining: 0 },
      })),
    });
    const answer = now(gate(checkRequest(CHAT)));
    expect([answer.code, answer.status, answer.body['code']]).toEqual([8, 429, 'rate_limit_exceeded']);
    expect(answer.headers).toMatchObject({
      'retry-after': '12',
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '0',
    });
    expect(outcomes.at(-1)).toMatchObject({
      code: 'rate_limit_exceeded',
      decision: { kind: 'deny', principal: { id: OWNED_KEY_ID } },
    });
  });

  test('of tokens per minute by model reject with the limit, Retry-After, and the headers of tokens', () => {
    const limit = { level: 'key', models: ['llama-*'], dimension: 'tokens_per_minute' } as const;
    const { gate } = watched({
      limiter: limiterOf(() => ({
        kind: 'refused',
        code: 'rate_limit_exceeded',
        detail: 'Too many tokens.',
        rate: undefined,
        tokenRate: { ...RATE, limit: 1000, remaining: 9 },
        retryAfterSeconds: 12,
        limit,
      })),
    });
    const answer = now(gate(checkRequest(CHAT)));
    expect([answer.status, answer.body['code'], answer.body['limit']]).toEqual([429, 'rate_limit_exceeded', limit]);
    expect(answer.headers).toMatchObject({
      'retry-after': '12',
      'x-ratelimit-limit-tokens': '1000',
      'x-ratelimit-remaining-tokens': '9',
      'x-ratelimit-reset-tokens': '12s',
    });
    expect(answer.headers).not.toHaveProperty('x-ratelimit-limit-requests');
  });

  test('by a budget show the amounts to callers that may read usage, and what is left of own budgets to their callers', () => {
    const budget: BudgetState = {
      id: makeId('bud', 0, Buffer.alloc(10)),
      name: 'team-a',
      unit: 'tokens',
      period: 'month',
      resetsAt: '2026-11-18T12:00:00.000Z',
      own: false,
      limit: 100,
      spent: 60,
      reserved: 30,
      remaining: 10,
    };
    const refused = { kind: 'refused', code: 'insufficient_quota', detail: 'No.', resetsAt: budget.resetsAt } as const;
    const check = (decision: LimitDecision, scopes: readonly string[], budgetHeader: boolean) => {
      const principal: KeyPrincipal = { ...TENANT_KEY, grant: compileGrant(['chat:write', ...scopes], {}) };
      const resolver = {
        resolve: (): Resolution => ({ identity: { kind: 'proved', principal }, snapshot: world.snapshot }),
      };
      const { gate, outcomes } = watched({ resolver, limiter: limiterOf(() => decision), budgetHeader });
      return { ...now(gate(checkRequest(CHAT))), outcomes };
    };
    const refusal: LimitDecision = { ...refused, budget, rate: undefined };
    const reader = check(refusal, ['usage:read'], true);
    expect(reader.body['budget']).toMatchObject({ name: 'team-a', limit: 100, spent: 60, reserved: 30, remaining: 10 });
    expect(reader.headers['x-postern-budget-remaining']).toBe('"team-a"; remaining=10; unit=tokens; reset=3600');
    expect(reader.headers['x-should-retry']).toBe('false');
    expect(reader.outcomes.at(-1)?.decision).toMatchObject({ kind: 'deny', budgetId: budget.id });
    const stranger = check(refusal, [], true);
    expect(stranger.body['budget']).toEqual({
      id: budget.id,
      name: 'team-a',
      period: 'month',
      resets_at: budget.resetsAt,
    });
    expect(stranger.headers['x-postern-budget-remaining']).toBe('"team-a"; reset=3600');

    const allowed = (own: boolean, scopes: readonly string[], header: boolean) =>
      check({ kind: 'admitted', reservation: undefined, rate: undefined, budget: { ...budget, own } }, scopes, header)
        .added['x-postern-budget-remaining'];
    expect(allowed(true, [], false)).toBeUndefined();
    expect(allowed(false, [], true)).toBe('"team-a"; reset=3600');
    expect(allowed(true, [], true)).toBe(allowed(false, ['usage:read'], true));
    expect(allowed(true, [], true)).toContain('remaining=10');
  });

  test('that are used up for the month say until when, and that trying again is of no use', () => {
    const resetsAt = '2026-12-01T00:00:00.000Z';
    const { gate } = watched({
      limiter: limiterOf(() => ({
        kind: 'refused',
        code: 'insufficient_quota',
        detail: 'Used up.',
        resetsAt,
        rate: undefined,
      })),
    });
    const answer = now(gate(checkRequest(CHAT)));
    expect([answer.status, answer.body['code'], answer.body['resets_at']]).toEqual([
      429,
      'insufficient_quota',
      resetsAt,
    ]);
    expect(answer.headers['x-should-retry']).toBe('false');
    expect(answer.headers['retry-after']).toBeUndefined();
  });

  test.each<[string, () => Promise<LimitDecision>]>([
    ['reject', () => Promise.reject(new Fault('no store'))],
    ['never answer', () => new Promise(() => undefined)],
  ])('that %s are a fault, never an allow', async (_name, admit) => {
    const { gate } = watched({ limiter: limiterOf(admit), maxWaitMs: 5 });
    const answer = readAnswer(await gate(checkRequest(CHAT)));
    expect([answer.status, answer.body['code']]).toEqual([503, 'unavailable']);
  });

  test.each(['at once', 'later'])(
    'that admit %s a request whose answer cannot be written get back what they reserved',
    async (when) => {
      const released: string[] = [];
      const unwritable: LimitDecision = {
        kind: 'admitted',
        reservation: 'r1',
        get rate(): undefined {
          throw new Error('a bug');
        },
      };
      const { gate } = watched({
        limiter: {
          admit: () => (when === 'later' ? Promise.resolve(unwritable) : unwritable),
          release: (reservation) => released.push(reservation),
        },
      });
      expect(readAnswer(await gate(checkRequest(CHAT))).status).toBe(503);
      expect(released).toEqual(['r1']);
    },
  );

  test('and lookups together wait no longer than the bound of a check, and no longer than its caller', async () => {
    let monotonic = 0;
    const waits: number[] = [];
    const callOf = (deadlineMs: number): UnaryCall => ({
      deadlineMs,
      onCancel: () => undefined,
      releaseUnlessDelivered: () => undefined,
    });
    const { gate, outcomes } = watched({
      monotonicMs: () => monotonic,
      resolver: {
        async resolve(...asked) {
          monotonic += 1990;
          return world.resolver.resolve(...asked);
        },
      },
      limiter: limiterOf(() => new Promise(() => waits.push(monotonic))),
    });
    // Without a deadline: 10 ms are left for the limits.
    expect(readAnswer(await gate(checkRequest(CHAT))).status).toBe(503);
    expect(waits).toEqual([1990]);
    // The time was over when the message was whole.
    expect(now(gate(checkRequest(CHAT), callOf(1990))).status).toBe(503);
    expect(waits).toHaveLength(1);
    expect(outcomes.map(({ code }) => code)).toEqual(['unavailable', 'unavailable']);
  });

  test('that throw are a fault, and those that have to wait are waited for', async () => {
    const throwing = watched({
      limiter: limiterOf(() => {
        throw new Error('a bug');
      }),
    });
    expect(now(throwing.gate(checkRequest(CHAT))).status).toBe(503);
    const { gate } = watched({ limiter: limiterOf(async () => admitted) });
    expect(readAnswer(await gate(checkRequest(CHAT))).code).toBe(0);
  });
});
