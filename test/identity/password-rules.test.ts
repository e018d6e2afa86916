import { describe, expect, it } from 'vitest';
import { passwordProblems } from '../../src/identity/password-rules.ts';

describe('a new password is refused', () => {
  it.each(['', 'short', 'x'.repeat(14), 'hunter2hunter2', '👩‍🚀👩‍🚀'])('below 15 characters: %j', (password) => {
    expect(passwordProblems(password)).toEqual(['The password must have at least 15 characters.']);
  });

  it('above 256 characters, counted as people count them', () => {
    const long = Array.from({ length: 256 }, (_, i) => String.fromCodePoint(0x1f300 + ((i * 37) % 251))).join('');
    expect(passwordProblems(long)).toEqual([]);
    expect(passwordProblems(`${long}x`)).toEqual(['The password must have at most 256 characters.']);
  });

  it.each([
    'passwordpassword',
    'PasswordPassword',
    'password12345678',
    'Password1234567!',
    'aaaaaaaaaaaaaaa',
    'abababababababab',
    '123123123123123',
    '123456789012345',
    '1234567890123456789',
    '987654321098765',
    'abcdefghijklmnop',
    'zyxwvutsrqponmlk',
    'qwertyuiopasdfgh',
    'qwertyuiop12345',
    '1qaz2wsx3edc4rfv',
    'correcthorsebatterystaple',
    'iloveyouforever1',
    'ｐａｓｓｗｏｒｄｐａｓｓｗｏｒｄ',
    'administrator123',
  ])('when it is common or follows an obvious pattern: %s', (password) => {
    expect(passwordProblems(password)).toEqual(['The password is too common and easy to guess. Choose another one.']);
  });

  it.each(['maja.lindqvist@acme.example', 'MajaLindqvist12', 'lindqvist-maja!', 'maja-lindqvist-1'])(
    'when it is the e-mail address or the name: %s',
    (password) => {
      expect(passwordProblems(password, { email: 'maja.lindqvist@acme.example', name: 'Maja Lindqvist' })).toHaveLength(
        1,
      );
    },
  );
});

describe('a new password is accepted', () => {
  it.each([
    'a winter morning in Uppsala',
    'correct horse battery staple',
    'maja likes long walks',
    'kV8-wq2Zr-0pLm4',
    'äpplen och päron åt alla',
    'ett lösenord på svenska',
    'パスワードは長いほうがいいですよね',
  ])('without rules about kinds of characters: %s', (password) => {
    expect(passwordProblems(password, { email: 'maja.lindqvist@acme.example', name: 'Maja Lindqvist' })).toEqual([]);
  });
});
