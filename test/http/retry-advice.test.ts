/** The headers for clients that retry automatically. */

import { expect, test } from 'vitest';
import { ERRORS, type ErrorCode, Refusal } from '../../src/domain/errors.ts';
import { problemOf } from '../../src/http/problems.ts';

const CODES = Object.keys(ERRORS).filter((name): name is ErrorCode => name in ERRORS);

test.each(CODES)('%s has X-Should-Retry and Retry-After as its status and code require', (code) => {
  const { status, headers } = problemOf(new Refusal(code, 'Why.'), 'req_1');
  expect(status).toBe(ERRORS[code].status);
  if (code === 'idempotency_in_progress') {
    expect(headers).toMatchObject({ 'x-should-retry': 'true', 'retry-after': '1' });
  } else if (status === 409 || code === 'insufficient_quota') {
    expect([headers['x-should-retry'], headers['retry-after']]).toEqual(['false', undefined]);
  } else {
    expect(headers['x-should-retry']).toBeUndefined();
    expect(headers['retry-after'] !== undefined).toBe(status === 429 || status === 503);
  }
});
