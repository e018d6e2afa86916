import { expect, test } from 'vitest';
import { compileGrant } from '../../src/decision/compile.ts';
import { interned } from '../../src/decision/interned.ts';

test('equal values are one object', () => {
  const names = { models: ['llama-*'] };
  expect(compileGrant(['chat:*'], names)).toBe(compileGrant(['chat:*'], { models: ['llama-*'] }));
  expect(compileGrant(['chat:*'], names)).not.toBe(compileGrant(['chat:*'], { models: ['llama-3'] }));
});

test('a large value is created on each call and never kept, so that large texts cannot fill the memory', () => {
  const made: string[] = [];
  const once = interned(
    10,
    (text: string) => text,
    (text) => {
      made.push(text);
      return { text };
    },
  );
  const small = 'x'.repeat(100);
  const large = 'x'.repeat(10_000);
  for (const text of [small, small, large, large]) expect(once(text)).toEqual({ text });
  expect(made).toEqual([small, large, large]);
});
