/**
 * The dynamic table of a peer's encoder (RFC 7541, sections 2.3.2 and 4). This server sets its size to 0, but a peer
 * may use the default until it has acknowledged the setting (RFC 9113, section 6.5.3). Envoy does so, because it sends
 * requests before it reads anything.
 */

/** RFC 9113, section 6.5.2: the size until a setting of this server is acknowledged, in bytes. */
const DEFAULT_BYTES = 4096;
/** RFC 7541, section 4.1 */
const ENTRY_OVERHEAD = 32;

type TableEntry = readonly [name: string, value: string];

export class DynamicTable {
  /** The entries, the newest first. */
  readonly #entries: TableEntry[] = [];
  #bytes = 0;
  /** The size that the encoder has chosen. */
  #maxBytes = DEFAULT_BYTES;
  /** The largest size that it may choose. */
  #limitBytes = DEFAULT_BYTES;

  /** Called when the peer has acknowledged a size of 0, after which it can refer to no entry. */
  close(): void {
    this.#limitBytes = 0;
    this.#maxBytes = 0;
    this.#evict(0);
  }

  /** Whether no later block can refer to an earlier one. */
  get isClosed(): boolean {
    return this.#limitBytes === 0;
  }

  /** @param index 0 = the newest entry */
  at(index: number): TableEntry | undefined {
    return this.#entries[index];
  }

  /** @returns false if the encoder chooses a larger size than permitted */
  resize(maxBytes: number): boolean {
    if (maxBytes > this.#limitBytes) return false;
    this.#maxBytes = maxBytes;
    this.#evict(maxBytes);
    return true;
  }

  /** Adds an entry. An entry that is larger than the table empties it (section 4.4). */
  add(name: string, value: string): void {
    const bytes = sizeOf(name, value);
    if (bytes > this.#maxBytes) {
      this.#evict(0);
      return;
    }
    this.#evict(this.#maxBytes - bytes);
    this.#entries.unshift([name, value]);
    this.#bytes += bytes;
  }

  #evict(toBytes: number): void {
    while (this.#bytes > toBytes) {
      const last = this.#entries.pop();
      if (last === undefined) return;
      this.#bytes -= sizeOf(...last);
    }
  }
}

/** The size of a header field in a table or a list, in bytes. */
export function sizeOf(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD;
}
