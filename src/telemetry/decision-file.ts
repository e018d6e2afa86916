/**
 * The decision log in a file. All workers of a server append to it, each a batch of whole lines at a time, so that
 * lines never mix. The sink opens the file again when the path names another file, so a rotation renames the file and
 * needs no signal.
 */

import { type FileHandle, open, stat } from 'node:fs/promises';
import { reasonOf } from '../domain/errors.ts';
import { jsonLine } from './decision-json.ts';
import type { DecisionSink } from './decision-log.ts';

/** The owner writes, and the group of a log shipper reads. */
const MODE = 0o640;
/** How often the sink compares the path with the open file. */
const CHECK_EVERY_MS = 1000;

export class DecisionFile implements DecisionSink {
  readonly render = jsonLine;
  readonly #path: string;
  #handle: FileHandle | undefined;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  /** True if a write failed within a line. The next batch then begins with a line end. */
  #isTorn = false;

  constructor(path: string) {
    this.#path = path;
  }

  async open(): Promise<void> {
    try {
      await this.#current();
    } catch (cause) {
      throw new Error(
        `log.decisions.file: ${this.#path} cannot be opened: ${reasonOf(cause)}. Make it writable for this user, or set log.decisions.file (POSTERN_LOG_DECISIONS_FILE) to another path.`,
        { cause },
      );
    }
  }

  async deliver(lines: Buffer): Promise<void> {
    const handle = await this.#current();
    const bytes = this.#isTorn ? Buffer.concat([Buffer.of(LINE_END), lines]) : lines;
    let written = 0;
    try {
      while (written < bytes.length) written += (await handle.write(bytes, written)).bytesWritten;
      this.#isTorn = false;
    } catch (error) {
      if (written > 0) this.#isTorn = bytes[written - 1] !== LINE_END;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
  }

  /** Returns the file of the path. Opens or creates it if it is not the open one. */
  async #current(): Promise<FileHandle> {
    const nowMs = performance.now();
    if (this.#handle !== undefined && nowMs - this.#checkedAtMs < CHECK_EVERY_MS) return this.#handle;
    this.#checkedAtMs = nowMs;
    if (this.#handle !== undefined && (await this.#isNamed(this.#handle))) return this.#handle;
    const next = await open(this.#path, 'a', MODE);
    const before = this.#handle;
    this.#handle = next;
    this.#isTorn = false;
    await before?.close();
    return next;
  }

  async #isNamed(handle: FileHandle): Promise<boolean> {
    const [named, own] = await Promise.all([stat(this.#path).catch(() => undefined), handle.stat()]);
    return named !== undefined && named.ino === own.ino && named.dev === own.dev;
  }
}

const LINE_END = 0x0a;
