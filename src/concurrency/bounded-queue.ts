/** A first-in, first-out queue of a fixed capacity. Its memory follows its length. */
export class BoundedQueue<T extends object | string> {
  readonly #capacity: number;
  /** The items, after the places of items that were removed. */
  #items: (T | undefined)[] = [];
  #first = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#items.length - this.#first;
  }

  get isFull(): boolean {
    return this.length >= this.#capacity;
  }

  /** Appends an item. Returns false, and keeps nothing of it, if the queue is full. */
  push(item: T): boolean {
    if (this.isFull) return false;
    this.#items.push(item);
    return true;
  }

  /** Returns up to `most` items, the oldest first, and keeps them. */
  peek(most: number): readonly T[] {
    return this.#items.slice(this.#first, this.#first + most).filter((item) => item !== undefined);
  }

  /** Removes up to `count` items, the oldest first. */
  drop(count: number): void {
    const end = Math.min(this.#first + count, this.#items.length);
    this.#items.fill(undefined, this.#first, end);
    this.#first = end;
    if (this.#first * 2 <= this.#items.length) return;
    this.#items = this.#items.slice(this.#first);
    this.#first = 0;
  }

  /** Removes and returns up to `most` items, the oldest first. */
  take(most: number): readonly T[] {
    const taken = this.peek(most);
    this.drop(taken.length);
    return taken;
  }
}
