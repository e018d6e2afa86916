import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bindOutcome } from '../../../src/directory/bind-outcome.ts';
import { readPolicyError } from '../../../src/directory/password-policy.ts';

const of = (code: number, text = '', policy?: 'password_expired' | 'account_locked' | 'change_after_reset') => {
  const outcome = bindOutcome({ code, text, policy });
  return outcome.kind === 'refused' || outcome.kind === 'password_expired'
    ? `${outcome.kind} ${outcome.reason}`
    : outcome.kind;
};
const ad = (data: string) =>
  of(49, `80090308: LdapErr: DSID-0C0903A9, comment: AcceptSecurityContext error, data ${data}, v1db1`);

describe('Active Directory’s data', () => {
  it.each([
    ['525', 'refused unknown_user'],
    ['52e', 'refused wrong_password'],
    ['52E', 'refused wrong_password'],
    ['52f', 'refused refused'],
    ['530', 'refused not_at_this_time'],
    ['531', 'refused not_from_this_station'],
    ['532', 'password_expired expired'],
    ['533', 'refused disabled'],
    ['701', 'refused expired'],
    ['773', 'password_expired must_change'],
    ['775', 'refused locked'],
    ['57', 'refused refused'],
  ])('%s is %s', (data, outcome) => {
    expect(ad(data)).toBe(outcome);
  });
});

describe('texts and controls of the others', () => {
  it.each([
    ['389: wrong or unknown', of(49), 'refused wrong_password'],
    ['389: inactivated', of(53, 'Account inactivated. Contact system administrator.'), 'refused disabled'],
    ['389: locked', of(19, 'Exceed password retry limit. Please try later.'), 'refused locked'],
    ['389: expired', of(49, 'password expired!'), 'password_expired expired'],
    ['389: must change', of(0, '', 'change_after_reset'), 'password_expired must_change'],
    ['FreeIPA: principal expired', of(53, 'Account (Kerberos principal) is expired'), 'refused expired'],
    ['FreeIPA: locked', of(53, 'Too many failed logins.'), 'refused locked'],
    ['OpenLDAP: locked', of(49, '', 'account_locked'), 'refused locked'],
    ['OpenLDAP: expired', of(49, '', 'password_expired'), 'password_expired expired'],
    ['no password in the entry', of(48), 'refused wrong_password'],
    ['malformed name', of(34, 'invalid DN'), 'refused invalid_username'],
    ['no such entry', of(32), 'refused unknown_user'],
    ['right', of(0), 'proved'],
  ])('%s', (_, outcome, expected) => {
    expect(outcome).toBe(expected);
  });
});

it('only result code 0 proves a user, for any text and password policy state of other codes', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.string(),
      fc.constantFrom(undefined, 'change_after_reset' as const),
      (code, text, policy) => {
        expect(of(code, text, policy)).not.toBe('proved');
      },
    ),
  );
});

it.each([1, 3, 8, 13, 51, 52, 80])('code %i says nothing about the password', (code) => {
  expect(of(code)).toBe('fault');
});

it('the password policy control is read as its draft defines it', () => {
  expect(readPolicyError(Buffer.from('3003810100', 'hex'))).toBe('password_expired');
  expect(readPolicyError(Buffer.from('3003810101', 'hex'))).toBe('account_locked');
  expect(readPolicyError(Buffer.from('3003810102', 'hex'))).toBe('change_after_reset');
  expect(readPolicyError(Buffer.from('3008a003800103810102', 'hex'))).toBe('change_after_reset');
  for (const silent of ['', '3000', '3005a003800103', '30038101', '3003810103', '3003810109', '0403810101']) {
    expect(readPolicyError(Buffer.from(silent, 'hex'))).toBeUndefined();
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => readPolicyError(bytes) !== null));
});
