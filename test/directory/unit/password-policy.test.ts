/** The password policy controls of servers, beside the result code, in the bytes that they send. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readPolicyError } from '../../../src/directory/password-policy.ts';

const read = (hex: string) => readPolicyError(Buffer.from(hex, 'hex'));

test.each([
  [
    '389 Directory Server, with a warning before the error and lengths of five bytes',
    '30840000000ea084000000058003015180810102',
    'change_after_reset',
  ],
  ['OpenLDAP', '3003810101', 'account_locked'],
  ['an expired password', '3003810100', 'password_expired'],
  ['a warning before the error, in short lengths', '3008a003800101810102', 'change_after_reset'],
  ['nothing amiss', '3000', undefined],
  ['a warning alone', '3005a003800101', undefined],
  ['an error of a later draft', '3003810108', undefined],
  ['a length beyond the end', '3005810102', undefined],
  ['a length without an end', '3080810102', undefined],
  ['something after the answer', '300381010200', undefined],
])('%s', (_, hex, error) => {
  expect(read(hex)).toBe(error);
});

test('the reader ends without an exception for any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void readPolicyError(Uint8Array.of(0x30, ...bytes))),
  );
});
