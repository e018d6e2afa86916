import { describe, expect, it } from 'vitest';
import { accountState, generalisedTime, statePerBind } from '../../../src/directory/account-state.ts';
import { entryOf } from './entries.ts';

const NOW = Date.parse('2026-06-01T12:00:00Z');
const filetime = (iso: string): string => String(BigInt(Date.parse(iso) + 11_644_473_600_000) * 10_000n);

describe('an account by its entry', () => {
  it.each([
    ['nothing said', {}, 'usable'],
    [
      'AD, normal',
      { userAccountControl: '512', accountExpires: '9223372036854775807', lockoutTime: '0', pwdLastSet: '1' },
      'usable',
    ],
    ['AD, never expires', { userAccountControl: '512', accountExpires: '0' }, 'usable'],
    ['AD, disabled', { userAccountControl: '514' }, 'disabled'],
    ['AD, account expired', { userAccountControl: '512', accountExpires: filetime('2026-05-31T00:00:00Z') }, 'expired'],
    ['AD, expires tomorrow', { userAccountControl: '512', accountExpires: filetime('2026-06-02T00:00:00Z') }, 'usable'],
    ['AD, locked', { userAccountControl: '512', 'msDS-User-Account-Control-Computed': '16' }, 'locked'],
    [
      'AD, was locked',
      { lockoutTime: filetime('2026-05-01T00:00:00Z'), 'msDS-User-Account-Control-Computed': '0' },
      'usable',
    ],
    ['AD, locked and not computed', { lockoutTime: filetime('2026-05-01T00:00:00Z') }, 'locked'],
    ['AD, password expired', { 'msDS-User-Account-Control-Computed': '8388608' }, 'password_expired'],
    ['AD, must change', { userAccountControl: '512', pwdLastSet: '0' }, 'password_expired'],
    ['AD, password does not expire', { userAccountControl: '66048', pwdLastSet: '0' }, 'usable'],
    ['389, disabled', { nsAccountLock: 'TRUE' }, 'disabled'],
    ['389, not disabled', { nsaccountlock: 'false' }, 'usable'],
    ['389, locked for ever', { accountUnlockTime: '19700101000000Z' }, 'locked'],
    ['389, locked for a while', { accountUnlockTime: '20260601130000Z' }, 'locked'],
    ['389, lock is over', { accountUnlockTime: '20260601110000Z' }, 'usable'],
    ['389, must change', { passwordExpirationTime: '19700101000000Z' }, 'password_expired'],
    ['389, password not expired', { passwordExpirationTime: '20380119031407Z' }, 'usable'],
    ['FreeIPA, principal expired', { krbPrincipalExpiration: '20260601000000Z' }, 'expired'],
    ['FreeIPA, password expired', { krbPasswordExpiration: '20260601000000Z' }, 'password_expired'],
    ['OpenLDAP, locked by an administrator', { pwdAccountLockedTime: '000001010000Z' }, 'disabled'],
    ['OpenLDAP, locked', { pwdAccountLockedTime: '20260601110000Z' }, 'locked'],
    ['OpenLDAP, must change', { pwdReset: 'TRUE' }, 'password_expired'],
    ['OpenLDAP, not yet', { pwdStartTime: '20260701000000Z' }, 'disabled'],
    ['OpenLDAP, no longer', { pwdEndTime: '20260501000000Z' }, 'expired'],
  ])('%s', (_, attributes, state) => {
    expect(accountState(entryOf(attributes), NOW)).toBe(state);
  });

  it('is free again when a lock of known length is over', () => {
    const entry = entryOf({ pwdAccountLockedTime: '20260601113000Z' });
    expect(accountState(entry, NOW, { lockoutSeconds: 600 })).toBe('usable');
    expect(accountState(entry, NOW, { lockoutSeconds: 3600 })).toBe('locked');
    expect(accountState(entryOf({ pwdAccountLockedTime: '000001010000Z' }), NOW, { lockoutSeconds: 600 })).toBe(
      'disabled',
    );
  });

  it('is judged at a login by the bind, except for the states that FreeIPA accepts at a bind', () => {
    expect(statePerBind(entryOf({ pwdAccountLockedTime: '20260601110000Z', pwdLastSet: '0' }), NOW)).toBeUndefined();
    expect(statePerBind(entryOf({ krbPasswordExpiration: '20260601000000Z' }), NOW)).toBe('password_expired');
  });
});

it.each([
  ['20260601120000Z', NOW],
  ['202606011200Z', NOW],
  ['2026060112Z', NOW],
  ['20260601120000.5Z', NOW],
  ['20260601140000+0200', NOW],
  ['20260601', undefined],
  ['20261301000000Z', undefined],
  ['', undefined],
])('the time %j', (text, ms) => {
  expect(generalisedTime(text)).toBe(ms);
});
