/** The reader of the log that names another gate's denials. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { logNameOf, readOtherGate, SHADOW_LOG } from '../../src/extauthz/access-log/other-gate.ts';
import { runs } from '../support/properties.ts';
import { accessLog, entryBytes, messageOf, type Told } from './support/access-log.ts';

const told = fc.record({
  requestId: fc.constantFrom('6f1c2a3e-0b1d-4c5e-9f00-112233445566', 'a', '', 'with space', 'ü', 'x'.repeat(129)),
  status: fc.constantFrom(200, 401, 403, 429, 503),
  details: fc.constantFrom('ext_authz_denied', 'via_upstream', 'ext_authz_error', 'ext_authz_denied_'),
});

describe('the reader', () => {
  test('finds the requests that an ext_authz filter denied with 401 or 403, by an id that all reports have', () => {
    fc.assert(
      fc.property(fc.array(told, { maxLength: 8 }), (entries) => {
        // The naive twin.
        const denied = entries.filter(
          ({ requestId, status, details }) =>
            ['6f1c2a3e-0b1d-4c5e-9f00-112233445566', 'a'].includes(requestId) &&
            (status === 401 || status === 403) &&
            details === 'ext_authz_denied',
        );
        expect(readOtherGate(accessLog(...entries))).toEqual({
          entries: entries.length,
          denied: denied.map(({ requestId }) => requestId),
          unreadable: 0,
          whole: true,
        });
      }),
      { numRuns: runs(500) },
    );
  });

  test('reads entries of any bytes without an exception, and the others of the message', () => {
    const good: Told = { requestId: 'good', status: 403, details: 'ext_authz_denied' };
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 }), (garbage) => {
        const batch = readOtherGate(messageOf([entryBytes(good), ...garbage.map(Buffer.from), entryBytes(good)]));
        expect(batch.whole).toBe(true);
        expect(batch.entries + batch.unreadable).toBe(garbage.length + 2);
        expect(batch.denied.filter((id) => id === 'good')).toHaveLength(2);
      }),
      { numRuns: runs(500) },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        readOtherGate(Buffer.from(bytes));
        logNameOf(Buffer.from(bytes));
      }),
      { numRuns: runs(500) },
    );
  });

  test('finds the name of the log in the first message of a stream', () => {
    expect(logNameOf(accessLog())).toBe('usage');
    expect(logNameOf(messageOf([]))).toBe('');
    expect(SHADOW_LOG).toBe('postern-shadow');
  });
});
