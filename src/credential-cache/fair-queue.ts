/** A queue of several clients' items: the clients take turns, and each client's own items stay in order. */
export class FairQueue<Item> {
  /** By client. The client at the front is served next, and then moves to the back. */
  readonly #lists = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(client: string, item: Item): void {
    this.#lists.getOrInsert(client, []).push(item);
    this.#size++;
  }

  /** Removes and returns the oldest item of the client whose turn it is; undefined when the queue is empty. */
  shift(): Item | undefined {
    const [first] = this.#lists;
    if (first === undefined) return undefined;
    const [client, list] = first;
    const item = list.shift();
    this.#lists.delete(client);
    if (list.length > 0) this.#lists.set(client, list);
    this.#size--;
    return item;
  }

  /**
   * Removes and returns the newest item of the client with the most items, so that another client's item fits.
   * @returns undefined if no client has more items than the given one: then the given client's item must be rejected
   */
  dropFor(client: string): Item | undefined {
    let longest: readonly [string, Item[]] | undefined;
    let most = this.#lists.get(client)?.length ?? 0;
    for (const entry of this.#lists) {
      if (entry[1].length <= most) continue;
      most = entry[1].length;
      longest = entry;
    }
    // Removing the only item of a client would not make the queue fairer.
    if (longest === undefined || most < 2) return undefined;
    const [name, list] = longest;
    const item = list.pop();
    if (list.length === 0) this.#lists.delete(name);
    this.#size--;
    return item;
  }
}
