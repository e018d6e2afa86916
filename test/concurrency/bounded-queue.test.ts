import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BoundedQueue } from '../../src/concurrency/bounded-queue.ts';

type Command = { readonly kind: 'push' } | { readonly kind: 'peek' | 'take' | 'drop'; readonly count: number };

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: 'push' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('peek' as const, 'take' as const, 'drop' as const),
      count: fc.nat(5),
    }),
  },
);

test('the bounded queue keeps and returns the same items as a plain array', () => {
  fc.assert(
    fc.property(fc.nat(8), fc.array(command, { maxLength: 80 }), (capacity, commands) => {
      const queue = new BoundedQueue<string>(capacity);
      let naive: string[] = [];
      for (const [i, next] of commands.entries()) {
        if (next.kind === 'push') {
          const fits = naive.length < capacity;
          if (fits) naive.push(`item ${i}`);
          expect(queue.push(`item ${i}`)).toBe(fits);
        } else if (next.kind === 'drop') {
          queue.drop(next.count);
          naive = naive.slice(next.count);
        } else {
          expect(queue[next.kind](next.count)).toEqual(naive.slice(0, next.count));
          if (next.kind === 'take') naive = naive.slice(next.count);
        }
        expect(queue.length).toBe(naive.length);
        expect(queue.isFull).toBe(naive.length >= capacity);
      }
    }),
  );
});
