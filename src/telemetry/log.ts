/**
 * Logs: one JSON object per line on standard output. Writing never blocks. Lines that the reader does not accept in
 * time are dropped and counted.
 */

import { fstatSync } from 'node:fs';
import { type DestinationStream, destination, type Level, type Logger, pino, stdTimeFunctions } from 'pino';
import { describeError } from './describe-error.ts';
import { maskLine } from './masking.ts';

export type Log = Logger;

export interface LogOptions {
  readonly level: Level | 'silent';
  /** The destination of lines. Default: standard output. */
  readonly stream?: DestinationStream;
}

export interface Logging {
  readonly log: Log;
  /**
   * Writes complete lines, in UTF-8 and masked by the caller, between those of the log. Resolves when the reader of
   * standard output has them. Rejects if there is no reader. The bytes may change after the call.
   */
  readonly write: (lines: Buffer) => Promise<void>;
  /** Lines that were dropped because the reader of standard output was too slow. */
  readonly dropped: () => number;
  /** Writes the waiting lines, at shutdown. */
  readonly flush: () => void;
}

const MAX_HELD_BYTES = 4 * 1_048_576;
/**
 * The processes of one server share standard output. A pipe accepts a write of this size as a whole (PIPE_BUF), so
 * lines of two processes do not mix.
 */
const PIPE_WRITE_BYTES = 4096;
/** Files and terminals accept any write as a whole. */
const FILE_WRITE_BYTES = 65_536;
const STANDARD_OUTPUT = 1;
const LINE_END = 0x0a;

export function startLogging({ level, stream }: LogOptions): Logging {
  if (stream !== undefined) {
    const write = async (lines: Buffer): Promise<void> => void stream.write(lines.toString());
    return { log: makeLog(level, stream), write, dropped: () => 0, flush: () => undefined };
  }
  let dropped = 0;
  const maxWrite = maxWriteBytes();
  const out = destination({ dest: STANDARD_OUTPUT, sync: false, maxLength: MAX_HELD_BYTES, maxWrite });
  out.on('drop', () => dropped++);
  // A closed pipe must not stop the server.
  out.on('error', () => dropped++);
  const flush = (): void => {
    try {
      out.flushSync();
    } catch {
      dropped++;
    }
  };
  const write = (lines: Buffer): Promise<void> => {
    let taken = true;
    for (const piece of pieces(lines, maxWrite)) taken = out.write(piece);
    return taken ? Promise.resolve() : drained(out);
  };
  return { log: makeLog(level, out), write, dropped: () => dropped, flush };
}

function maxWriteBytes(): number {
  try {
    const output = fstatSync(STANDARD_OUTPUT);
    return output.isFIFO() || output.isSocket() ? PIPE_WRITE_BYTES : FILE_WRITE_BYTES;
  } catch {
    // Standard output is closed.
    return PIPE_WRITE_BYTES;
  }
}

/** Joins whole lines up to the size of one write. A longer line is a piece of its own. */
function* pieces(lines: Buffer, maxBytes: number): Generator<string> {
  for (let at = 0, end = 0; at < lines.length; at = end) {
    end = at + maxBytes;
    if (end < lines.length) end = lines.lastIndexOf(LINE_END, end - 1) + 1;
    if (end <= at) end = lines.indexOf(LINE_END, at) + 1 || lines.length;
    yield lines.toString('utf8', at, end);
  }
}

function drained(out: ReturnType<typeof destination>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onDrain = (): void => {
      out.off('error', onError);
      resolve();
    };
    const onError = (error: Error): void => {
      out.off('drain', onDrain);
      reject(error);
    };
    out.once('drain', onDrain);
    out.once('error', onError);
  });
}

function makeLog(level: LogOptions['level'], stream: DestinationStream): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error: unknown) => describeError(error), error: (error: unknown) => describeError(error) },
      // Masks the finished line, because the bindings of a child logger are in no other place.
      hooks: { streamWrite: maskLine },
    },
    stream,
  );
}
