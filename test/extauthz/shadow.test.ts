/** Checks in shadow mode: decided like all others, with nothing in the answer that Envoy could apply. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { Limiter } from '../../src/extauthz/ports.ts';
import type { LimitDecision } from '../../src/metering/admission.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { runs } from '../support/properties.ts';
import { readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld, NOW_MS } from './support/little-world.ts';
import { checkRequest, type RequestSpec } from './support/requests.ts';

const world = littleWorld();
const SHADOW = { 'postern.mode': 'shadow' };

const REFUSED: LimitDecision = {
  kind: 'refused',
  code: 'rate_limit_exceeded',
  detail: 'This tenant may send 1 requests per minute. Try again in 9 s.',
  rate: { limit: 1, remaining: 0, resetSeconds: 9, windowSeconds: 60 },
};
const ADMITTED: LimitDecision = { kind: 'admitted', reservation: undefined, rate: undefined };

const taken: string[] = [];
const outcomes: CheckOutcome[] = [];
let limited: LimitDecision = ADMITTED;

/** Enforced checks and checks in shadow mode have the same limits, but only enforced ones take something. */
const gate = createCheckHandler({
  routes: builtinRoutes(),
  resolver: {
    resolve: (...asked) => {
      taken.push('last use');
      return world.resolver.resolve(...asked);
    },
  },
  limiter: limiterOf(() => taken.push('limit')),
  shadow: { resolver: world.resolver, limiter: limiterOf(() => undefined) },
  observer: { observe: (outcome) => outcomes.push(outcome) },
  bodyRates: { callerRate: 8000, tenantRate: 1e9 },
  trustedHops: 0,
  forwardCredential: false,
  now: () => NOW_MS,
  monotonicMs: () => 0,
});

function limiterOf(take: () => unknown): Limiter {
  return {
    admit: () => {
      take();
      return limited;
    },
    release: () => taken.push('release'),
  };
}

/** Returns the answer, the outcome, and everything that the check took. */
function decided(spec: RequestSpec | Buffer) {
  taken.length = 0;
  outcomes.length = 0;
  const bytes = gate(Buffer.isBuffer(spec) ? spec : checkRequest(spec));
  if (bytes instanceof Promise) throw new Error('a warm check waits for nothing');
  return { answer: readAnswer(bytes), outcome: outcomes[0] ?? expect.fail(), taken: [...taken] };
}

const bearer = fc.constantFrom(world.ownedKey, world.tenantKey, 'psk_of_nobody', undefined);
const spec = fc.record({
  authorization: bearer,
  method: fc.constantFrom('GET', 'POST'),
  path: fc.constantFrom('/v1/chat/completions', '/v1/messages', '/v1/models', '/v1/auth/login', '/nothing', '/v1/a%3b'),
  tenant: fc.constantFrom(undefined, 'acme', 'globex'),
  spelling: fc.boolean(),
  body: fc.constantFrom('', '{"model":"llama-3-70b"}', '{"model":', '{"model":"a","max_tokens":1000000}'),
  refused: fc.boolean(),
});

describe('a check in shadow mode', () => {
  test('has the outcome of the same check enforced, and an answer without headers and metadata', () => {
    fc.assert(
      fc.property(spec, ({ authorization, method, path, tenant, spelling, body, refused }) => {
        limited = refused ? REFUSED : ADMITTED;
        const headers: [string, string][] = [['content-type', 'application/json']];
        if (authorization !== undefined) headers.push(['authorization', `Bearer ${authorization}`]);
        if (tenant !== undefined) headers.push(['x-tenant-id', tenant]);
        if (spelling) headers.push(['x-postern.subject', 'forged']);
        const request = { method, path, headers, body };
        const enforced = decided(request);
        const { answer, outcome, taken: changed } = decided({ ...request, context: SHADOW });
        expect(changed).toEqual([]);
        expect(outcome).toMatchObject({ code: enforced.outcome.code, shadow: true });
        expect(enforced.outcome.shadow).toBe(false);
        expect(answer).toMatchObject({ code: enforced.answer.code, status: enforced.answer.status });
        expect([answer.options, answer.removed, answer.added, answer.metadata]).toEqual([[], [], {}, {}]);
        expect(answer.body['code']).toBe(enforced.answer.body['code']);
      }),
      { numRuns: runs(500) },
    );
  });

  test('that cannot be read gets a denial without headers and metadata as well', () => {
    const malformed = checkRequest({ path: '/v1/models', headers: [['x-tenant-id', 'acme']], context: SHADOW });
    const at = malformed.indexOf('/v1/models');
    malformed[at] = 0xff;
    const { answer, outcome } = decided(malformed);
    expect(outcome).toMatchObject({ code: 'malformed_request', shadow: true });
    expect(answer).toMatchObject({ code: 3, status: 400, options: [], metadata: {} });
  });

  test('is denied and recorded where the server accepts none, and enforced checks are decided as before', () => {
    const outcomes: CheckOutcome[] = [];
    const refusing = createCheckHandler({
      routes: builtinRoutes(),
      resolver: world.resolver,
      acceptsShadow: false,
      observer: { observe: (outcome) => outcomes.push(outcome) },
      trustedHops: 0,
      forwardCredential: false,
      now: () => NOW_MS,
    });
    const headers = [
      ['authorization', `Bearer ${world.ownedKey}`],
      ['content-type', 'application/json'],
    ] as const;
    const request = { method: 'POST', path: '/v1/chat/completions', headers, body: '{"model":"llama-3-70b"}' };
    const answers = [SHADOW, undefined].map((context) => {
      const bytes = refusing(checkRequest({ ...request, ...(context && { context }) }));
      return bytes instanceof Promise ? expect.fail() : readAnswer(bytes);
    });
    expect(answers).toMatchObject([{ status: 400, options: [], metadata: {} }, { code: 0 }]);
    expect(answers[0]?.body['detail']).toContain('trial.enabled');
    expect(outcomes).toMatchObject([
      { code: 'malformed_request', shadow: true },
      { code: 'allow', shadow: false },
    ]);
  });

  test('that fails gets a 503 without headers and metadata', () => {
    const failing = createCheckHandler({
      routes: builtinRoutes(),
      resolver: world.resolver,
      shadow: {
        resolver: {
          resolve: () => {
            throw new Error('no');
          },
        },
        limiter: limiterOf(() => undefined),
      },
      observer: { observe: () => undefined },
      trustedHops: 0,
      forwardCredential: false,
    });
    const bytes = failing(checkRequest({ path: '/v1/models', method: 'GET', context: SHADOW }));
    if (bytes instanceof Promise) throw new Error('a warm check waits for nothing');
    expect(readAnswer(bytes)).toMatchObject({ code: 14, status: 503, options: [], metadata: {} });
  });

  test('takes nothing of the rates at which bodies are read from enforced checks, and is bounded by its own', () => {
    limited = ADMITTED;
    const request: RequestSpec = {
      path: '/v1/chat/completions',
      headers: [
        ['authorization', `Bearer ${world.ownedKey}`],
        ['content-type', 'application/json'],
      ],
      body: JSON.stringify({ model: 'llama-3-70b', messages: [{ content: 'x'.repeat(9000) }] }),
    };
    const shadow = { ...request, context: SHADOW };
    expect(decided(shadow).outcome.code).toBe('allow');
    expect(decided(shadow).outcome.code).toBe('rate_limit_exceeded');
    expect(decided(request).outcome.code).toBe('allow');
    expect(decided(request).outcome.code).toBe('rate_limit_exceeded');
  });
});

test.each(['Shadow', 'shadow ', 'enforce', '', 'off'])(
  'a mode that is misspelled (%j) allows nothing and is not in shadow mode',
  (mode) => {
    const headers: [string, string][] = [['authorization', `Bearer ${world.ownedKey}`]];
    const { answer, outcome } = decided({
      ...{ method: 'GET', path: '/v1/models', headers },
      context: { 'postern.mode': mode },
    });
    expect(outcome).toMatchObject({ code: 'malformed_request', shadow: false });
    expect(answer).toMatchObject({ code: 3, status: 400 });
  },
);
