import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/domain/errors.ts';
import { parsePolicyName } from '../../src/domain/ids.ts';
import { anthropicProblemDetails, problemDetails } from '../../src/domain/problem-details.ts';
import {
  createDenialWriter,
  type Denial,
  type DenialCode,
  MAX_DENIAL_BODY_BYTES,
} from '../../src/extauthz/denied-response.ts';
import { runs } from '../support/properties.ts';
import { readAnswer } from './support/definition.ts';
import { present, ROUTE_LINES, USER } from './support/little-world.ts';

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
    expect(answer.body).toEqual(problemDetails(code, 'Why.', REQUEST_ID));
    expect(answer.metadata).toEqual({ code, request_id: REQUEST_ID });
  });

  test.each(CODES)('%s on the Messages API differs only in type, error and request-id', (code) => {
    const denial: Denial = { code, detail: 'Why.', policy: 'office-hours', param: 'model', principal: USER };
    const plain = answerTo(denial);
    const answer = answerTo(denial, true);
    const body = anthropicProblemDetails(
      problemDetails(code, 'Why.', REQUEST_ID, { policy: 'office-hours', param: 'model' }),
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
      fc.string({ unit: 'binary', maxLength: 3000 }),
      fc.nat(100_000).map((length) => '"\u0001é\ud800'.repeat(length / 4)),
    );
    const denial = fc.record({
      code: fc.constantFrom(...CODES.map(([code]) => code)),
      detail: text,
      param: fc.constantFrom('model', 'messages'),
      policy: fc.constant(present(parsePolicyName('a'.repeat(63)))),
      route: fc.constantFrom(...ROUTE_LINES),
      principal: fc.constant(USER),
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
