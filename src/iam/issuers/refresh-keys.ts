/**
 * Fetches the keys of issuers and stores them. A gate gets them by the change feed and opens no connection to an
 * issuer. No transaction and no lock is held while an issuer answers. A failed fetch leaves the last good keys in use.
 */

import { Semaphore } from '../../concurrency/semaphore.ts';
import { startPeriodicRuns } from '../../concurrency/single-flight.ts';
import type { IssuerId, TenantId } from '../../domain/ids.ts';
import { isObject } from '../../domain/json.ts';
import type { IssuerKey } from '../../domain/records.ts';
import { compareTexts } from '../../domain/text.ts';
import { validateKeySet } from '../../identity/issuer-keys.ts';
import { type FetchRules, fetchBounded } from '../../outbound/fetch.ts';
import type { Queryable } from '../../store/queryable.ts';
import { parseFetched } from './fetched-json.ts';
import { beginKeyAttempt, dueKeyRefreshes, type KeyAttempt, saveKeyFailure, saveKeys } from './key-queries.ts';

/** The interval between two successful fetches, and the longest one after failures. */
const INTERVAL_MS = 600_000;
/** The part of the interval that chance takes off, so that the fetches of many issuers do not coincide. */
const JITTER = 0.1;
/** Doubles with each failure. */
const FIRST_RETRY_MS = 5_000;
/** Bounds one refresh, with the discovery. It ends before the next one may begin (key-queries.ts). */
const TIMEOUT_MS = 5_000;
/** The largest number of fetches at a time in one process. A tenant leaves half of the free ones to others. */
const CONCURRENCY = 8;
/** Requests for a refresh that wait for their turn. */
const MAX_WAITING = 32;
const EVERY_MS = 1_000;
/** Issuers that one run considers: more than it can begin, because a tenant may have its share already. */
const CANDIDATES = 64;

export type RefreshOutcome =
  | { readonly kind: 'ok'; readonly keys: readonly IssuerKey[] }
  /** One sentence for an administrator of the tenant. */
  | { readonly kind: 'failed'; readonly reason: string };

/** A finished fetch, for logs and metrics. */
export interface RefreshReport {
  /** `failures`: those before this fetch, since the last success. */
  readonly issuer: Pick<KeyAttempt, 'id' | 'tenantId' | 'failures'>;
  readonly outcome: RefreshOutcome;
  /** True if the stored keys are too old to be used, or there are none. */
  readonly isStale: boolean;
}

type IssuerFetchRules = Pick<FetchRules, 'allowedHosts' | 'resolve' | 'timeoutMs' | 'signal'>;

export interface KeyRefreshParts {
  readonly db: { readonly knex: Queryable };
  /** A fetch that its signal ends stores nothing. */
  readonly fetch: IssuerFetchRules;
  readonly maxStalenessMs: number;
  /** Shared by all refreshes of the process. */
  readonly turns: Semaphore;
  /** Must not throw. */
  readonly onRefresh?: (report: RefreshReport) => void;
}

export function keyRefreshTurns(): Semaphore {
  return new Semaphore({ permits: CONCURRENCY, maxWaiting: MAX_WAITING });
}

/**
 * Fetches and stores the keys of one issuer now. Rejects with a Fault if the store is unavailable.
 * @returns failed also for an issuer without keys to fetch, and if too many requests for a refresh wait
 */
export async function refreshIssuerKeys(
  parts: KeyRefreshParts,
  issuer: { readonly id: IssuerId; readonly tenantId: TenantId },
): Promise<RefreshOutcome> {
  const run = parts.turns.run(async () => {
    const attempt = await beginKeyAttempt(parts.db.knex, issuer.id, { isDueOnly: false });
    return attempt === undefined ? NOTHING_TO_FETCH : perform(parts, attempt);
  }, issuer.tenantId);
  return (await run) ?? { kind: 'failed', reason: 'Too many refreshes of keys are under way. Try again.' };
}

const NOTHING_TO_FETCH: RefreshOutcome = { kind: 'failed', reason: 'The keys of this issuer are pasted, not fetched.' };

/**
 * Begins to refresh issuers that are due, as many as have a turn now. Rejects with a Fault if the store is unavailable.
 * @returns a promise for each issuer, which rejects with a Fault if the store is unavailable
 */
export async function beginDueRefreshes(parts: KeyRefreshParts): Promise<readonly Promise<void>[]> {
  const { db, turns } = parts;
  const due = await dueKeyRefreshes(db.knex, CANDIDATES);
  return due.flatMap(({ id, tenantId }) => {
    if (!turns.tryAcquire(tenantId)) return [];
    return [refreshIfDue(parts, id).finally(() => turns.release(tenantId))];
  });
}

async function refreshIfDue(parts: KeyRefreshParts, id: IssuerId): Promise<void> {
  const attempt = await beginKeyAttempt(parts.db.knex, id, { isDueOnly: true });
  if (attempt !== undefined) await perform(parts, attempt);
}

/**
 * Refreshes due issuers at an interval. A slow issuer delays no other.
 * @param onFault called when the store was unavailable
 * @returns a function that stops it, and resolves when the fetches under way have ended
 */
export function startKeyRefresh(
  parts: KeyRefreshParts,
  onFault: (error: unknown) => void,
  everyMs = EVERY_MS,
): () => Promise<void> {
  const running = new Set<Promise<void>>();
  const stop = startPeriodicRuns(async () => {
    try {
      for (const refresh of await beginDueRefreshes(parts)) {
        const ended = refresh.catch(onFault).finally(() => running.delete(ended));
        running.add(ended);
      }
    } catch (error) {
      onFault(error);
    }
  }, everyMs);
  return async () => {
    await stop();
    await Promise.all(running);
  };
}

async function perform(parts: KeyRefreshParts, attempt: KeyAttempt): Promise<RefreshOutcome> {
  const { db, fetch, maxStalenessMs, onRefresh } = parts;
  const outcome = await fetchKeys(fetch, attempt);
  if (fetch.signal?.aborted === true) return outcome;
  let isStale = false;
  if (outcome.kind === 'ok') {
    await saveKeys(db.knex, attempt, outcome.keys, INTERVAL_MS * (1 - JITTER * Math.random()));
  } else {
    isStale = await saveKeyFailure(db.knex, attempt, outcome.reason, {
      nextInMs: retryInMs(attempt.failures),
      maxStalenessMs,
    });
  }
  onRefresh?.({ issuer: attempt, outcome, isStale });
  return outcome;
}

/** @param failures before this one */
function retryInMs(failures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** Math.min(failures, 16), INTERVAL_MS);
}

async function fetchKeys(rules: IssuerFetchRules, issuer: KeyAttempt): Promise<RefreshOutcome> {
  const endMs = performance.now() + (rules.timeoutMs ?? TIMEOUT_MS);
  const rest = (): IssuerFetchRules => ({ ...rules, timeoutMs: Math.max(1, Math.ceil(endMs - performance.now())) });
  const place = await keysPlace(rest(), issuer);
  if (place.kind === 'failed') return place;
  const found = await fetchJson(rest(), place.url, issuer.ca);
  if (found.kind === 'failed') return { kind: 'failed', reason: `The key set was not fetched. ${found.reason}` };
  const validated = validateKeySet(found.value, issuer.kind);
  if (validated.kind === 'error') return { kind: 'failed', reason: validated.message };
  // In one order: an issuer that answers in another order has not changed its keys.
  return { kind: 'ok', keys: validated.keys.toSorted((a, b) => compareTexts(JSON.stringify(a), JSON.stringify(b))) };
}

type KeysPlace = { readonly kind: 'ok'; readonly url: string } | { readonly kind: 'failed'; readonly reason: string };

async function keysPlace(rules: IssuerFetchRules, { issuer, jwksUri, ca }: KeyAttempt): Promise<KeysPlace> {
  if (jwksUri !== null) return { kind: 'ok', url: jwksUri };
  const found = await fetchDiscovery(rules, { issuer, ca });
  if (found.kind === 'failed') return found;
  const url = found.document['jwks_uri'];
  if (typeof url !== 'string') return { kind: 'failed', reason: 'The discovery document has no `jwks_uri`.' };
  return { kind: 'ok', url };
}

type DiscoveryOutcome =
  /** Its `issuer` is the issuer; its other members are not validated. */
  | { readonly kind: 'ok'; readonly document: Readonly<Record<string, unknown>> }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Fetches the discovery document of an issuer. Its `issuer` must be equal to the last character (OpenID Connect
 * Discovery 1.0, section 4.3), otherwise a document could speak for another issuer. Never rejects.
 */
export async function fetchDiscovery(
  rules: IssuerFetchRules,
  { issuer, ca }: { readonly issuer: string; readonly ca: string | null },
): Promise<DiscoveryOutcome> {
  const found = await fetchJson(rules, `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, ca);
  if (found.kind === 'failed')
    return { kind: 'failed', reason: `The discovery document was not fetched. ${found.reason}` };
  const document = found.value;
  if (!isObject(document)) return { kind: 'failed', reason: 'The discovery document is not an object.' };
  if (document['issuer'] !== issuer)
    return {
      kind: 'failed',
      reason: 'The discovery document has another `issuer`: it must be equal to the last character.',
    };
  return { kind: 'ok', document };
}

type JsonOutcome =
  | { readonly kind: 'ok'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly reason: string };

async function fetchJson(rules: IssuerFetchRules, url: string, ca: string | null): Promise<JsonOutcome> {
  const answer = await fetchBounded(url, { ...rules, ca: ca ?? undefined });
  if (answer.kind === 'failed') return answer;
  if (answer.status !== 200) return { kind: 'failed', reason: `The server answered with the status ${answer.status}.` };
  const read = parseFetched(answer.body);
  return read.kind === 'ok' ? read : { kind: 'failed', reason: read.reason };
}
