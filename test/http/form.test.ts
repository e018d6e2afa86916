import { describe, expect, test } from 'vitest';
import { Refusal } from '../../src/domain/errors.ts';
import { parseForm } from '../../src/http/form.ts';

const codeOf = (body: string | Uint8Array): string => {
  try {
    parseForm(Buffer.from(body));
    return 'accepted';
  } catch (error) {
    return error instanceof Refusal ? error.code : String(error);
  }
};

describe('the body of a form', () => {
  test('gives its parameters, decoded once', () => {
    expect(parseForm(Buffer.from('a=1+2%20%2B&b=&c=%2541&__proto__=x'))).toEqual({
      a: '1 2 +',
      b: '',
      c: '%41',
      ['__proto__']: 'x',
    });
  });

  test.each([
    ['a repeated parameter', 'a=1&a=1'],
    ['a parameter that is repeated in another spelling', 'a=1&%61=2'],
    ['more parameters than any form has', Array.from({ length: 65 }, (_, i) => `p${i}=1`).join('&')],
    ['bytes that are not UTF-8', Uint8Array.of(0x61, 0x3d, 0xff)],
  ])('is rejected with %s', (_name, body) => {
    expect(codeOf(body)).toBe('invalid_parameter');
    expect(codeOf('a=1&b=1')).toBe('accepted');
  });
});
