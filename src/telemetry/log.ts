/** Logs: one JSON object per line on standard output. Writing never blocks; what the reader does not take in time is dropped and counted. */

import { type DestinationStream, destination, type Level, type Logger, pino, stdTimeFunctions } from 'pino';
import { maskLine } from './masking.ts';

export type Log = Logger;

export interface LogOptions {
  readonly level: Level | 'silent';
  /** Where lines go; standard output unless told. */
  readonly stream?: DestinationStream;
}

export interface Logging {
  readonly log: Log;
  /** Lines that were not written because the reader of standard output was too slow. */
  readonly dropped: () => number;
  /** Writes what is still held back; for the end of the process. */
  readonly flush: () => void;
}

const MAX_HELD_BYTES = 4 * 1_048_576;

export function startLogging({ level, stream }: LogOptions): Logging {
  if (stream !== undefined) {
    return { log: makeLog(level, stream), dropped: () => 0, flush: () => undefined };
  }
  let dropped = 0;
  const out = destination({ dest: 1, sync: false, maxLength: MAX_HELD_BYTES });
  out.on('drop', () => dropped++);
  // A closed pipe is no reason to stop deciding.
  out.on('error', () => dropped++);
  const flush = (): void => {
    try {
      out.flushSync();
    } catch {
      dropped++;
    }
  };
  return { log: makeLog(level, out), dropped: () => dropped, flush };
}

function makeLog(level: LogOptions['level'], stream: DestinationStream): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error: unknown) => describeError(error), error: (error: unknown) => describeError(error) },
      // On the finished line: what is bound to a child logger passes no other place.
      hooks: { streamWrite: maskLine },
    },
    stream,
  );
}

const MAX_CAUSES = 5;

/** What an error says. Its other members stay out: libraries hang requests, connections and bound values on them. */
function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) {
    return typeof error === 'string' ? error : typeof error;
  }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const cause = error.cause === undefined || depth >= MAX_CAUSES ? {} : { cause: describeError(error.cause, depth + 1) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
