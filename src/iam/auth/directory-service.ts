/**
 * Access to the directories, with a limit of requests in progress for each kind of operation and a report of each
 * outcome. A directory that does not respond delays only the requests that need it.
 */

import { Semaphore } from '../../concurrency/semaphore.ts';
import { UnavailableDirectory } from '../../directory/faults.ts';
import type { Directories } from '../../directory/model.ts';
import { Refusal } from '../../domain/errors.ts';
import { type DirectoryReport, hasAnswered } from '../../telemetry/directory-metrics.ts';
import { createResponseTimer, type ResponseTimer } from './response-timer.ts';

export interface DirectoryService {
  readonly directories: Directories;
  /** The names of the configured directories. */
  readonly names: readonly string[];
  /** The names of the directories in which a service account looks up key owners daily. */
  readonly lookedUp: readonly string[];
  /** One semaphore for each operation, so that logins cannot use up the permits of refreshes. */
  readonly queues: Readonly<Record<DirectoryReport['operation'], Semaphore>>;
  readonly responseTimer: ResponseTimer;
  readonly report: (report: DirectoryReport) => void;
  /** True if the directory answered the last login, refresh or lookup; undefined: there was none since the start. */
  readonly isUp: (name: string) => boolean | undefined;
}

interface DirectoryServiceOptions {
  readonly directories: Directories;
  readonly names: readonly string[];
  /** Default: all. */
  readonly lookedUp?: readonly string[];
  /** The maximum number of logins in progress, and of refreshes. Default: 64. */
  readonly maxAtOnce?: number;
  readonly report?: (report: DirectoryReport) => void;
}

/**
 * Less than the number of failures that one address may have: while a directory does not respond, its logins count as
 * failures, and local logins from the same address must still be possible.
 */
const MAX_AT_ONCE = 64;
const MAX_TESTS = 4;
/** Daily lookups in progress in one process. */
export const MAX_LOOKUPS = 4;
const RETRY_AFTER_SECONDS = 1;

/** Creates the service. A process has one. */
export function createDirectoryService(options: DirectoryServiceOptions): DirectoryService {
  const { directories, names, lookedUp = names, maxAtOnce = MAX_AT_ONCE, report = () => undefined } = options;
  // A request does not wait for a permit, because the directory's timeout begins when it has one.
  const semaphore = (permits: number) => new Semaphore({ permits, maxWaiting: 0 });
  const queues = {
    login: semaphore(maxAtOnce),
    refresh: semaphore(maxAtOnce),
    lookup: semaphore(MAX_LOOKUPS),
    test: semaphore(MAX_TESTS),
  };
  const up = new Map<string, boolean>();
  return {
    directories,
    names,
    lookedUp,
    queues,
    responseTimer: createResponseTimer(),
    report: (one) => {
      const answered = hasAnswered(one);
      if (one.directory !== undefined && answered !== undefined) up.set(one.directory, answered);
      report(one);
    },
    isUp: (name) => up.get(name),
  };
}

/**
 * Runs a request to a directory if a permit of its operation is free.
 * @param directory the directory of the request; undefined if the username decides
 * @throws Refusal `unavailable` if no permit is free; Fault from the directory
 */
export async function queryDirectory<T>(
  service: DirectoryService,
  operation: DirectoryReport['operation'],
  directory: string | undefined,
  request: () => Promise<T>,
): Promise<T> {
  try {
    const response = service.queues[operation].run(request);
    if (response !== undefined) return await response;
  } catch (error) {
    const failed = directory ?? (error instanceof UnavailableDirectory ? error.directory : undefined);
    service.report({ operation, directory: failed, outcome: 'unavailable' });
    throw error;
  }
  service.report({ operation, directory, outcome: 'too_many_at_once' });
  throw new Refusal('unavailable', 'Too many requests to the directory are in progress. Try again in a few seconds.', {
    retryAfter: RETRY_AFTER_SECONDS,
  });
}
