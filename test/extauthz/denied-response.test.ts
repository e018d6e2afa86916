import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/domain/errors.ts';
import { makeId, parseBudgetName, parsePolicyName } from '../../src/domain/ids.ts';
import { anthropicProblemDetails, problemDetails } from '../../src/domain/problem-details.ts';
import { budgetHeaderValue } from '../../src/extauthz/budget-answers.ts';
import {
  createDenialWriter,
  type Denial,
  type DenialCode,
  MAX_DENIAL_BODY_BYTES,
} from '../../src/extauthz/denied-response.ts';
import type { BudgetState } from '../../src/metering/admission.ts';
import { anyCharacter, runs } from '../support/properties.ts';
import { readAnswer } from './support/definition.ts';
import { present, ROUTE_LINES, USER } from './support/little-world.ts';

const BUDGET: BudgetState = {
  id: makeId('bud', 0, Buffer.alloc(10)),
  name: 'team-a',
  unit: 'money',
  period: 'month',
  resetsAt: '2026-12-01T00:00:00.000Z',
  own: false,
  limit: 500_000_000,
  spent: 400_000_000,
  reserved: 99_999_999,
  remaining: 1,
};

const denialAnswer = createDenialWriter();
const REQUEST_ID = 'req_00000000000000000000000000';
const CODES: readonly [DenialCode, number][] = [
  ['malformed_request', 3],
  ['malformed_path', 3],
  ['no_route', 7],
  ['missing_credential', 16],
  ['invalid_credential', 16],
  ['token_expired', 16],
  ['invalid_tenant', 3],
  ['tenant_mismatch', 7],
  ['tenant_suspended', 7],
  ['malformed_body', 3],
  ['body_too_large', 8],
  ['denied_by_policy', 7],
  ['insufficient_permission', 7],
  ['resource_not_permitted', 7],
  ['max_tokens_exceeded', 3],
  ['rate_limit_exceeded', 8],
  ['insufficient_quota', 8],
  ['unavailable', 14],
];

/** By status, as Anthropic's API documents them. */
const ANTHROPIC_TYPES = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [503, 'overloaded_error'],
]);

const RESETS_AT = '2026-12-01T00:00:00.000Z';

/** The reset of a quota that no period resets. */
const resetOf = (code: Denial['code']) => (code === 'insufficient_quota' ? { resets_at: null } : {});

const answerTo = (denial: Denial, isMessages = false): ReturnType<typeof readAnswer> =>
  readAnswer(denialAnswer(denial, REQUEST_ID, isMessages));

describe('a denial, read by the complete definition', () => {
  test.each(CODES)('%s is status %i inside, its own status outside, and a problem', (code, rpcCode) => {
    const answer = answerTo({ code, detail: 'Why.' });
    expect([answer.code, answer.kind, answer.status]).toEqual([rpcCode, 'denied', ERRORS[code].status]);
    expect(answer.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'x-request-id': REQUEST_ID,
    });
    expect(answer.body).toEqual(problemDetails(code, 'Why.', REQUEST_ID, resetOf(code)));
    expect(answer.metadata).toEqual({ code, request_id: REQUEST_ID });
  });

  test.each(CODES)('%s on the Messages API differs only in type, error and request-id', (code) => {
    const denial: Denial = { code, detail: 'Why.', policy: 'office-hours', param: 'model', principal: USER };
    const plain = answerTo(denial);
    const answer = answerTo(denial, true);
    const body = anthropicProblemDetails(
      problemDetails(code, 'Why.', REQUEST_ID, { policy: 'office-hours', param: 'model', ...resetOf(code) }),
    );
    expect(answer).toEqual({
      ...plain,
      body,
      bodyText: JSON.stringify(body),
      headers: { ...plain.headers, 'request-id': REQUEST_ID },
      options: expect.anything(),
    });
    expect(body).toMatchObject({ type: 'error', status: plain.status, code, policy: 'office-hours' });
    expect(body.error).toEqual({ type: ANTHROPIC_TYPES.get(ERRORS[code].status), message: 'Why.' });
    expect(plain.headers['request-id']).toBeUndefined();
  });

  test('never has code 0, and never a body that Envoy would cut', () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 3000 }),
      fc.nat(100_000).map((length) => '"\u0001é\ud800'.repeat(length / 4)),
    );
    const denial = fc.record({
      code: fc.constantFrom(...CODES.map(([code]) => code)),
      detail: text,
      param: fc.constantFrom('model', 'messages'),
      policy: fc.constant(present(parsePolicyName('a'.repeat(63)))),
      route: fc.constantFrom(...ROUTE_LINES),
      principal: fc.constant(USER),
      budget: fc.constantFrom(undefined, { ...BUDGET, name: '"é'.repeat(64) }),
      showsAmounts: fc.boolean(),
      limit: fc.option(
        fc.record({
          level: fc.constantFrom('tenant', 'user', 'key'),
          models: fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 256 }), { maxLength: 100 }),
          dimension: fc.constantFrom('requests_per_minute', 'tokens_per_minute', 'parallel'),
        }),
        { nil: undefined },
      ),
    });
    fc.assert(
      fc.property(denial, fc.boolean(), (given, isMessages) => {
        const answer = answerTo(given, isMessages);
        expect(answer.code).toBeGreaterThan(0);
        expect(answer.kind).toBe('denied');
        expect(Buffer.byteLength(answer.bodyText)).toBeLessThanOrEqual(MAX_DENIAL_BODY_BYTES);
        expect(answer.body).toMatchObject({ code: given.code, policy: given.policy, request_id: REQUEST_ID });
      }),
      { numRuns: runs(100) },
    );
  });

  test('says which policy, which member and whose request it was', () => {
    const [route] = ROUTE_LINES;
    const answer = answerTo({
      code: 'denied_by_policy',
      detail: 'No.',
      policy: 'office-hours',
      param: 'model',
      principal: USER,
      route: present(route),
    });
    expect(answer.body).toMatchObject({ policy: 'office-hours', error: { param: 'model' } });
    expect(answer.metadata).toMatchObject({
      code: 'denied_by_policy',
      subject: USER.id,
      subject_type: 'user',
      tenant: USER.tenantId,
    });
  });
});

describe('a denial by a budget', () => {
  const denial = { code: 'insufficient_quota', detail: 'No.', budget: BUDGET, principal: USER } as const;
  const { id } = BUDGET;
  const resets_at = RESETS_AT;

  test('names the budget, its period and its next reset, and no amount', () => {
    expect(answerTo(denial).body['budget']).toEqual({ id, name: 'team-a', period: 'month', resets_at });
    expect(answerTo({ ...denial, budget: { ...BUDGET, resetsAt: undefined } }).body['budget']).toMatchObject({
      resets_at: null,
    });
  });

  test('has the amounts for a caller that may read usage: money as decimal texts, other units as numbers', () => {
    const budgetOf = (parts: Partial<BudgetState>) =>
      answerTo({ ...denial, budget: { ...BUDGET, ...parts }, showsAmounts: true }, true).body['budget'];
    const amounts = { limit: '0.50', spent: '0.40', reserved: '0.099999999', remaining: '0.000000001' };
    expect(budgetOf({})).toEqual({ id, name: 'team-a', period: 'month', resets_at, unit: 'money', ...amounts });
    const tokens = { unit: 'tokens', limit: 9, spent: 8, reserved: 1, remaining: 0 } as const;
    expect(budgetOf(tokens)).toMatchObject(tokens);
    expect(budgetOf({ spent: undefined, reserved: undefined, remaining: undefined })).not.toHaveProperty('spent');
  });
});

describe('a denial by a limit by model', () => {
  test('names the level, the patterns and the dimension, and the time to wait', () => {
    const limit = { level: 'key', models: ['gpt-*'], dimension: 'parallel' } as const;
    const denial = {
      code: 'rate_limit_exceeded',
      detail: 'No.',
      limit,
      principal: USER,
      retryAfterSeconds: 1,
    } as const;
    const answer = answerTo(denial);
    expect(answer.body['limit']).toEqual(limit);
    expect(answer.headers['retry-after']).toBe('1');
    const many = { ...limit, models: Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(100, 'm')) };
    expect(answerTo({ ...denial, limit: many }).body['limit']).toEqual({ ...many, models: many.models.slice(0, 5) });
  });
});

describe('the header about what is left of a budget', () => {
  const nowMs = Date.parse('2026-11-30T23:00:00.500Z');

  test('has the name, the seconds until the reset and, for callers that may see it, the amount', () => {
    expect(budgetHeaderValue(BUDGET, true, nowMs)).toBe('"team-a"; remaining=0.000000001; unit=money; reset=3600');
    expect(budgetHeaderValue(BUDGET, false, nowMs)).toBe('"team-a"; reset=3600');
    const forever = { ...BUDGET, unit: 'requests', remaining: 7, resetsAt: undefined } as const;
    expect(budgetHeaderValue(forever, true, nowMs)).toBe('"team-a"; remaining=7; unit=requests');
  });

  test('quotes any name that a budget can have as a structured field, in printable ASCII', () => {
    const nameOf = (item: string): string =>
      item.startsWith('%')
        ? decodeURIComponent(item.slice(2, -1))
        : item.slice(1, -1).replaceAll(/\\(["\\])/g, (_, escaped: string) => escaped);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'aZ0 "\\%;,=é漢🎈e\u0301'), minLength: 1 }), (text) => {
        const name = parseBudgetName(text);
        if (name === undefined) return;
        const value = budgetHeaderValue({ ...BUDGET, name }, false, nowMs);
        expect(value).toMatch(/^(?:"(?:[ !#-[\]-~]|\\["\\])*"|%"(?:[ !#$&-~]|%[0-9a-f]{2})*"); reset=3600$/);
        expect(nameOf(value.slice(0, -'; reset=3600'.length))).toBe(name);
      }),
      { examples: [['say "hi" \\'], ['100%"é'], ['Research, EMEA']] },
    );
  });
});

describe('the headers of a denial', () => {
  const challenge = (denial: Denial): string | undefined => answerTo(denial).headers['www-authenticate'];

  test('without a credential, WWW-Authenticate names the scheme, and no error', () => {
    expect(challenge({ code: 'missing_credential', detail: '' })).toBe('Bearer realm="postern"');
  });

  test('for a credential that is not valid, WWW-Authenticate names invalid_token', () => {
    for (const code of ['invalid_credential', 'token_expired'] as const) {
      expect(challenge({ code, detail: '' })).toBe('Bearer realm="postern", error="invalid_token"');
    }
  });

  test('for a missing permission, WWW-Authenticate names insufficient_scope and the permission', () => {
    expect(challenge({ code: 'insufficient_permission', detail: '', permission: 'chat:write' })).toBe(
      'Bearer realm="postern", error="insufficient_scope", scope="chat:write"',
    );
  });

  test('other denials have no WWW-Authenticate', () => {
    for (const code of ['denied_by_policy', 'resource_not_permitted', 'no_route', 'unavailable'] as const) {
      expect(challenge({ code, detail: '' })).toBeUndefined();
    }
  });

  test('a fault and a rate limit have Retry-After, and a used up quota has none', () => {
    expect(answerTo({ code: 'unavailable', detail: '' }).headers['retry-after']).toBe('1');
    expect(answerTo({ code: 'rate_limit_exceeded', detail: '' }).headers['retry-after']).toBe('60');
    const { headers } = answerTo({ code: 'insufficient_quota', detail: '' });
    expect([headers['retry-after'], headers['x-should-retry']]).toEqual([undefined, 'false']);
  });

  test.each([false, true])(
    'a quota that does not reset by itself has resets_at null (form of Anthropic: %s)',
    (form) => {
      const denial = { code: 'insufficient_quota', detail: 'No.', principal: USER } as const;
      expect(answerTo(denial, form).body['resets_at']).toBeNull();
      expect(answerTo({ ...denial, resetsAt: RESETS_AT }, form).body['resets_at']).toBe(RESETS_AT);
      expect(answerTo({ ...denial, code: 'rate_limit_exceeded' }, form).body).not.toHaveProperty('resets_at');
    },
  );
});

describe('a denial without a principal', () => {
  const denials = fc.record({
    code: fc.constantFrom(
      'missing_credential',
      'invalid_credential',
      'token_expired',
      'no_route',
      'malformed_path',
      'unavailable',
    ),
    detail: fc.constantFrom('The request has no credential.', 'Nothing is here: “”.', 'x'.repeat(5000)),
    route: fc.constantFrom(undefined, ...ROUTE_LINES.slice(0, 3)),
    reason: fc.constantFrom(undefined, 'scheme', 'unknown'),
    isMessages: fc.boolean(),
    requestId: fc.stringMatching(/^req_[0-9a-z]{26}$/),
  });

  test('has the same answer from prepared bytes as one that is written for its request alone', () => {
    fc.assert(
      fc.property(fc.array(denials, { minLength: 1, maxLength: 30 }), (each) => {
        for (const { isMessages, requestId, route, reason, ...rest } of each) {
          const denial = { ...rest, ...(route && { route }), ...(reason && { reason }) };
          // Answers are prepared for ids of the usual length only.
          const written = denialAnswer(denial, `${requestId}-`, isMessages);
          const expected = JSON.stringify(readAnswer(written)).replaceAll(`${requestId}-`, requestId);
          expect(JSON.stringify(readAnswer(denialAnswer(denial, requestId, isMessages)))).toBe(expected);
        }
      }),
      { numRuns: runs(200) },
    );
  });
});
