/** A first-in, first-out queue of a fixed capacity, in one array. */
export class BoundedQueue<T> {
  readonly #places: (T | undefined)[];
  #first = 0;
  #length = 0;

  constructor(capacity: number) {
    this.#places = new Array<T | undefined>(capacity).fill(undefined);
  }

  get length(): number {
    return this.#length;
  }

  /** Appends an item. Returns false, and keeps nothing of it, if the queue is full. */
  push(item: T): boolean {
    if (this.#length === this.#places.length) return false;
    this.#places[(this.#first + this.#length) % this.#places.length] = item;
    this.#length++;
    return true;
  }

  /** Removes and returns the oldest item; undefined if there is none. */
  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#places[this.#first];
    this.#places[this.#first] = undefined;
    this.#first = (this.#first + 1) % this.#places.length;
    this.#length--;
    return item;
  }
}
