import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FairQueue } from '../../src/credential-cache/fair-queue.ts';

type Command =
  | { readonly kind: 'push'; readonly client: string }
  | { readonly kind: 'shift' }
  | { readonly kind: 'drop'; readonly client: string };

const client = fc.constantFrom('a', 'b', 'c');
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('push' as const), client }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'shift' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), client }) },
);

/** One plain list, searched each time. */
class NaiveQueue {
  items: { readonly client: string; readonly item: number }[] = [];
  /** Clients with items, the next to be served first. */
  turns: string[] = [];

  push(name: string, item: number): void {
    this.items.push({ client: name, item });
    if (!this.turns.includes(name)) this.turns.push(name);
  }

  shift(): number | undefined {
    const name = this.turns.shift();
    const found = this.items.find((entry) => entry.client === name);
    this.items = this.items.filter((entry) => entry !== found);
    if (name !== undefined && this.#count(name) > 0) this.turns.push(name);
    return found?.item;
  }

  drop(name: string): number | undefined {
    const most = Math.max(0, ...this.turns.map((other) => this.#count(other)));
    if (most < 2 || most <= this.#count(name)) return undefined;
    const longest = this.turns.find((other) => this.#count(other) === most);
    const found = this.items.findLast((entry) => entry.client === longest);
    this.items = this.items.filter((entry) => entry !== found);
    return found?.item;
  }

  #count(name: string): number {
    return this.items.filter((entry) => entry.client === name).length;
  }
}

describe('the fair queue', () => {
  test('serves clients in turn and each in order, like a plain list that is searched each time', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
        const queue = new FairQueue<number>();
        const naive = new NaiveQueue();
        for (const [item, next] of commands.entries()) {
          if (next.kind === 'push') {
            queue.push(next.client, item);
            naive.push(next.client, item);
          } else if (next.kind === 'shift') expect(queue.shift()).toBe(naive.shift());
          else expect(queue.dropFor(next.client)).toBe(naive.drop(next.client));
          expect(queue.size).toBe(naive.items.length);
        }
      }),
    );
  });

  test('a client with one item waits for at most one item of each other client', () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 1000; n++) queue.push('flood', `flood ${n}`);
    queue.push('other', 'other');
    expect([queue.shift(), queue.shift()]).toEqual(['flood 0', 'other']);
  });
});
