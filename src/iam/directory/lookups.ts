/**
 * Looks up the owners of keys, and the users of issuers, in their directory once a day, because a person that only uses
 * keys or tokens of issuers has no logins or refreshes. The database selects the due lookups, and a process claims each, so that they continue after a restart and
 * no two processes do the same one.
 */

import { startPeriodicRuns } from '../../concurrency/single-flight.ts';
import { Fault, Refusal } from '../../domain/errors.ts';
import { makeId, type UserId } from '../../domain/ids.ts';
import { transaction } from '../../store/transaction.ts';
import { type Standing, standingOf } from '../auth/directory-refresh.ts';
import { type DirectoryService, MAX_LOOKUPS, queryDirectory } from '../auth/directory-service.ts';
import { RemovalsFault, suspend, suspensionOf } from '../auth/directory-suspension.ts';
import { refreshUser } from '../auth/directory-user.ts';
import type { AuthParts, Provenance } from '../auth/parts.ts';
import { applyHere } from '../change/change.ts';
import { noteDirectoryCheck } from '../users/directory-queries.ts';
import { type ClaimedLookup, claimLookups, isOvertaken } from './queries.ts';

/** With MAX_CLAIMED, at most 120 lookups per minute and process: 172,800 persons a day. */
const RUN_EVERY_MS = 10_000;
const MAX_CLAIMED = 20;
/** The largest number of users that one run reads to find those that are due. */
const MAX_WALKED = 2_000;
/** A lookup without an answer is due again after this time. */
const CLAIM_MS = 15 * 60_000;
/** A directory that answered none of a run's lookups gets none for this time. */
const PAUSE_MS = 60_000;

/** The failed lookups of one directory in one run. */
export interface LookupFailure {
  readonly directory: string;
  readonly lookups: number;
  /** The first error. */
  readonly error: unknown;
}

type LookupParts = Pick<AuthParts, 'db' | 'feed' | 'flush' | 'now' | 'random'>;

export class DirectoryLookups {
  readonly #parts: LookupParts;
  readonly #service: DirectoryService;
  readonly #onFailure: (failure: LookupFailure) => void;
  readonly #pausedUntilMs = new Map<string, number>();
  #walkedTo: UserId | undefined;

  /** @param onFailure called once for each directory of a run that failed */
  constructor(parts: LookupParts, service: DirectoryService, onFailure: (failure: LookupFailure) => void) {
    this.#parts = parts;
    this.#service = service;
    this.#onFailure = onFailure;
  }

  /**
   * Claims due lookups and runs them, at most MAX_LOOKUPS at a time.
   * @param stop aborts the run: no further lookup begins. A claimed lookup that has not begun is due again after
   *   CLAIM_MS
   * @returns the number of claimed lookups
   * @throws Fault of the store
   */
  async run(stop?: AbortSignal): Promise<number> {
    const directories = this.#service.lookedUp.filter(
      (name) => (this.#pausedUntilMs.get(name) ?? 0) <= performance.now(),
    );
    if (directories.length === 0) return 0;
    const { lookups, walkedTo } = await claimLookups(this.#parts.db.knex, {
      directories,
      after: this.#walkedTo,
      maxWalked: MAX_WALKED,
      maxClaimed: MAX_CLAIMED,
      claimMs: CLAIM_MS,
    });
    this.#walkedTo = walkedTo;
    if (lookups.length === 0) return 0;
    const outcomes = await this.#all(lookups, stop);
    if (outcomes.some(({ changed }) => changed)) await applyHere(this.#parts);
    this.#conclude(outcomes);
    return lookups.length;
  }

  async #all(lookups: readonly ClaimedLookup[], stop: AbortSignal | undefined): Promise<readonly Outcome[]> {
    const left = [...lookups];
    const outcomes: Outcome[] = [];
    const one = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined && stop?.aborted !== true; next = left.shift()) {
        outcomes.push(await this.#one(next));
      }
    };
    await Promise.all(Array.from({ length: MAX_LOOKUPS }, one));
    return outcomes;
  }

  async #one(lookup: ClaimedLookup): Promise<Outcome> {
    const { directory, stableId } = lookup.identity;
    const askedMs = performance.now();
    try {
      const answer = await queryDirectory(this.#service, 'lookup', directory, () =>
        this.#service.directories.lookup(directory, stableId),
      );
      const found = standingOf(answer, lookup.tenantId);
      return { directory, changed: await this.#apply(lookup, found, askedMs), error: undefined, answered: true };
    } catch (error) {
      // A failed transaction of one person must not end the run.
      if (!(error instanceof Fault || error instanceof Refusal)) throw error;
      return { directory, changed: false, error, answered: error instanceof RemovalsFault };
    }
  }

  /** Writes the directory's answer about the user. Returns true if data changed that replicas cache. */
  async #apply(lookup: ClaimedLookup, found: Standing, askedMs: number): Promise<boolean> {
    const { identity, userId } = lookup;
    const report = (outcome: string): void =>
      this.#service.report({ operation: 'lookup', directory: identity.directory, outcome });
    const from = this.#provenance();
    try {
      const changed = await transaction(this.#parts.db, async (trx) => {
        if (await isOvertaken(trx, userId)) return false;
        if (found.kind === 'stands') return (await refreshUser(trx, found.person, from, askedMs)) === true;
        const suspension = suspensionOf(found.reason);
        if (suspension !== undefined) return (await suspend(trx, identity, suspension, from))?.changed === true;
        await noteDirectoryCheck(trx, userId);
        return false;
      });
      report(found.kind === 'stands' ? 'success' : found.reason);
      return changed;
    } catch (error) {
      if (error instanceof RemovalsFault) report('too_many_removed');
      throw error;
    }
  }

  /** Reports the failures of a run, and pauses the directories that gave no answer. */
  #conclude(outcomes: readonly Outcome[]): void {
    for (const directory of new Set(outcomes.map((outcome) => outcome.directory))) {
      const own = outcomes.filter((outcome) => outcome.directory === directory);
      const failed = own.filter(({ error }) => error !== undefined);
      const [first] = failed;
      if (first === undefined) continue;
      if (!own.some(({ answered }) => answered)) this.#pausedUntilMs.set(directory, performance.now() + PAUSE_MS);
      this.#onFailure({ directory, lookups: failed.length, error: first.error });
    }
  }

  #provenance(): Provenance {
    const nowMs = this.#parts.now();
    const requestId = makeId('req', nowMs, this.#parts.random(10));
    return { address: undefined, throttledAs: undefined, userAgent: undefined, requestId, nowMs };
  }
}

interface Outcome {
  readonly directory: string;
  readonly changed: boolean;
  readonly error: unknown;
  /** False if the directory or the store was unreachable. */
  readonly answered: boolean;
}

/**
 * Runs the lookups every ten seconds.
 * @param onFault called with the failure of a whole run. The next run retries.
 * @returns a function that stops them, and resolves when the current lookups have ended
 */
export function startLookups(lookups: DirectoryLookups, onFault: (error: unknown) => void): () => Promise<void> {
  return startPeriodicRuns((stop) => lookups.run(stop).then(() => undefined, onFault), RUN_EVERY_MS);
}
