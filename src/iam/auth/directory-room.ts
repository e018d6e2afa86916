/**
 * The way to the directories for everybody who logs in or refreshes: so many at once and no more, so that a directory that hangs holds up
 * nobody but those who need it; and what each question came to, for the metrics.
 */

import { Semaphore } from '../../concurrency/semaphore.ts';
import { UnavailableDirectory } from '../../directory/faults.ts';
import type { Directories } from '../../directory/model.ts';
import { Refusal } from '../../domain/errors.ts';
import { makePace, type Pace } from './pace.ts';

/** How a login by a directory, a refresh of such a session, the daily lookup of a user, or a try of a login ended. */
export interface DirectoryReport {
  readonly operation: 'login' | 'refresh' | 'lookup' | 'test';
  /** Undefined where none was asked, or none knew the name. */
  readonly directory: string | undefined;
  /** `success`, or why not: a directory's reason or Postern's own. */
  readonly outcome: string;
}

export interface DirectoryRoom {
  readonly directories: Directories;
  /** Of the configured directories. */
  readonly names: readonly string[];
  /** The names of those in which a service account looks up key owners daily. */
  readonly lookedUp: readonly string[];
  /** Each kind has places of its own: who refreshes is not kept out by those who guess. */
  readonly places: Readonly<Record<DirectoryReport['operation'], Semaphore>>;
  /** How long a login that fails takes. */
  readonly pace: Pace;
  readonly report: (report: DirectoryReport) => void;
}

export interface DirectoryRoomOptions {
  readonly directories: Directories;
  readonly names: readonly string[];
  /** Of directories with a service account. Default: all. */
  readonly lookedUp?: readonly string[];
  /** Logins, and refreshes, under way at once; 64 unless told. */
  readonly maxAtOnce?: number;
  readonly report?: (report: DirectoryReport) => void;
}

/**
 * Less than one address may fail: while a directory hangs its logins count as failures, and local ones from the same address go on beside
 * them.
 */
const MAX_AT_ONCE = 64;
const MAX_TESTS = 4;
/** Daily lookups of one process at a time. */
export const MAX_LOOKUPS = 4;
const RETRY_AFTER_SECONDS = 1;

/** One for the process. */
export function openDirectoryRoom(options: DirectoryRoomOptions): DirectoryRoom {
  const { directories, names, lookedUp = names, maxAtOnce = MAX_AT_ONCE, report = () => undefined } = options;
  // A request does not wait for a permit, because the directory's timeout begins when it has one.
  const semaphore = (permits: number) => new Semaphore({ permits, maxWaiting: 0 });
  const places = {
    login: semaphore(maxAtOnce),
    refresh: semaphore(maxAtOnce),
    lookup: semaphore(MAX_LOOKUPS),
    test: semaphore(MAX_TESTS),
  };
  return { directories, names, lookedUp, places, report, pace: makePace() };
}

/**
 * Asks when there is a place.
 * @param directory the one that is asked, where only one can be
 * @throws Refusal `unavailable` when there is none; Fault from the directory
 */
export async function asking<T>(
  room: DirectoryRoom,
  operation: DirectoryReport['operation'],
  directory: string | undefined,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    const asked = room.places[operation].run(ask);
    if (asked !== undefined) return await asked;
  } catch (error) {
    const of = directory ?? (error instanceof UnavailableDirectory ? error.directory : undefined);
    room.report({ operation, directory: of, outcome: 'unavailable' });
    throw error;
  }
  room.report({ operation, directory, outcome: 'too_many_at_once' });
  throw new Refusal('unavailable', 'Too many requests to the directory are in progress. Try again in a few seconds.', {
    retryAfter: RETRY_AFTER_SECONDS,
  });
}
