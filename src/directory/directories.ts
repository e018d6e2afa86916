/** Access to all configured directories. */

import { Semaphore } from '../concurrency/semaphore.ts';
import { Fault } from '../domain/errors.ts';
import { Deadline } from './deadline.ts';
import { type Directory, makeDirectory } from './directory.ts';
import { UnavailableDirectory } from './faults.ts';
import { logIn } from './login.ts';
import { lookUpPerson } from './lookup.ts';
import type { Directories, DirectoryAnswer, TestStep } from './model.ts';
import { problemsOf, problemsTogether } from './problems.ts';
import type { DirectorySettings } from './settings.ts';
import { runTestSteps } from './test-steps.ts';
import { directoriesFor, isName } from './user-name.ts';

interface DirectoryLimits {
  /** The largest number of open connections to one directory. */
  readonly maxConnections: number;
  /** The largest number of logins and lookups that wait for one. */
  readonly maxWaiting: number;
}

const LIMITS: DirectoryLimits = { maxConnections: 64, maxWaiting: 1000 };

/**
 * @param settings names are unique
 * @param now milliseconds since the epoch
 * @throws Error if a configured CA is invalid
 */
export function openDirectories(
  settings: readonly DirectorySettings[],
  limits: DirectoryLimits = LIMITS,
  now: () => number = Date.now,
): Directories {
  const all = settings.map((one) => ({
    directory: makeDirectory(one, now),
    domains: one.domains,
    namesWithoutDomain: one.namesWithoutDomain,
    connections: new Semaphore({ permits: limits.maxConnections, maxWaiting: limits.maxWaiting }),
  }));
  const byName = new Map(all.map((one) => [one.directory.settings.name, one]));

  return {
    problems: [...settings.flatMap(problemsOf), ...problemsTogether(settings)],
    authenticate: async (username, password, elapsedMs = 0) => {
      if (password === '') return { kind: 'refused', reason: 'empty_password' };
      if (!isName(username)) return { kind: 'refused', reason: 'invalid_username' };
      if (!isPassword(password)) return { kind: 'refused', reason: 'wrong_password' };
      return tryInOrder(directoriesFor(username, all), { username, password, elapsedMs });
    },
    lookup: async (name, stableId) => {
      const one = byName.get(name);
      if (one === undefined) throw new Fault(`no directory ${name} is configured`);
      const { directory, connections } = one;
      using deadline = new Deadline(directory.settings.timeoutMs);
      return await deadline.within(
        withConnection(connections, deadline, () => lookUpPerson(directory, stableId, deadline)),
      );
    },
    test: async (request) => {
      const candidates =
        request.directory === undefined ? directoriesFor(request.username, all) : [byName.get(request.directory)];
      const [first] = candidates;
      if (first === undefined) return [noDirectory(request.directory, all)];
      using deadline = new Deadline(first.directory.settings.timeoutMs);
      return await runTestSteps(first.directory, request, deadline);
    },
  };
}

/** Returns the step of a test for which no directory can be selected. */
function noDirectory(
  name: string | undefined,
  all: readonly { readonly directory: Directory; readonly domains: readonly string[] }[],
): TestStep {
  if (name === undefined && all.length > 0) {
    const advice = `Give the name with one of the domains ${all.flatMap(({ domains }) => domains).join(', ')}, or the directory.`;
    return { step: 'find_user', ok: false, detail: 'the name does not say in which of the directories it is', advice };
  }
  const advice = `Configured are: ${all.map(({ directory }) => directory.settings.name).join(', ') || 'none'}.`;
  return { step: 'connect', ok: false, detail: `no directory ${name ?? ''} is configured`, advice };
}

/**
 * Runs `task` when one of the directory's connections is free. Throws a Fault if too many wait, or when the deadline
 * passes.
 */
async function withConnection<T>(connections: Semaphore, deadline: Deadline, task: () => Promise<T>): Promise<T> {
  const result = connections.run(task, undefined, (turn) => deadline.within(turn));
  if (result === undefined) throw new Fault('too many questions to the directory at once');
  return await result;
}

/** Reports whether a directory could accept the password. No other password is sent. */
function isPassword(password: string): boolean {
  return password.length <= 1024 && password.isWellFormed();
}

/** Adds the directory to a fault, because the caller of several directories does not know which one failed. */
async function named<T>(directory: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof Fault ? new UnavailableDirectory(directory, error) : error;
  }
}

interface Login {
  readonly username: string;
  readonly password: string;
  readonly elapsedMs: number;
}

/**
 * Tries the directories in order until one finds the name. The next one is tried only if a search found no person and
 * no server received the password: neither a fault nor a verified password allows it. All of them together get the
 * longest of their timeouts, each its share of the rest.
 */
async function tryInOrder(
  candidates: readonly { readonly directory: Directory; readonly connections: Semaphore }[],
  { username, password, elapsedMs }: Login,
): Promise<DirectoryAnswer> {
  using whole = new Deadline(
    Math.max(...candidates.map(({ directory }) => directory.settings.timeoutMs), 1),
    elapsedMs,
  );
  let answer: DirectoryAnswer = { kind: 'refused', reason: 'no_domain' };
  for (const [index, { directory, connections }] of candidates.entries()) {
    const { timeoutMs } = directory.settings;
    const left = candidates.length - index;
    const shareMs = Math.min(timeoutMs, Math.max(1, whole.remainingMs() / left));
    // The last one gets the rest of its own time, and its fault names the configured timeout.
    using deadline = left === 1 ? new Deadline(timeoutMs, timeoutMs - shareMs) : new Deadline(shareMs);
    const login = withConnection(connections, deadline, () => logIn(directory, { username, password }, deadline));
    const attempt = await named(directory.settings.name, deadline.within(login));
    answer = attempt.answer;
    if (!attempt.elsewhere) break;
  }
  return answer;
}
