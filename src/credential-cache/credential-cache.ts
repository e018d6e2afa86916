/**
 * Resolves the form of a credential to the identity and the snapshot that a decision reads. If everything is cached,
 * nothing here waits.
 *
 * One synchronous step takes a resolution from entries that each show every change applied in this process
 * (read-through-cache.ts). Missing data is loaded, and the lookup starts again from the credential, so a resolution
 * never uses an entry that was replaced during the loads.
 */

import { networkOf } from '../decision/address.ts';
import type { HeaderValue } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { Fault } from '../domain/errors.ts';
import type { KeyDigest, UserId } from '../domain/ids.ts';
import { mapMembers } from '../domain/objects.ts';
import type { ChangeKind } from '../domain/records.ts';
import type { CacheStats } from '../telemetry/cache-metrics.ts';
import { Freshness } from './freshness.ts';
import { type LimitedClass, type Limiters, makeLimiters } from './limits.ts';
import type { Patience } from './load-limiter.ts';
import { DEPTH, type LookupResult, lookUp, type Maps, type Missing, type Subject } from './lookup.ts';
import { type MapsParts, makeMaps } from './maps.ts';
import type { Change, ChangeListener } from './ports.ts';
import { INVALID, MISSING, type Resolution } from './resolution.ts';
import { WaitingResolutions } from './waiting.ts';

export type { Resolution } from './resolution.ts';

/** Attempts of one resolution if the data that it loads is replaced during the loads. */
export const ROUNDS = 3;
/** Default for how long a request waits for its resolution, in milliseconds. */
const DEFAULT_MAX_WAIT_MS = 2000;
/** At most one read of the feed, then the loads, then the lookup that finds everything. */
const STEPS_PER_ROUND = 1 + DEPTH + 1;

export interface CredentialCacheParts extends MapsParts {
  /** Without a successful poll of the feed for this time, nothing cached is trusted. */
  readonly maxStalenessMs: number;
}

/**
 * The map of each kind of change. A change of a signing key or of prices belongs to none. The feed's key of a global
 * change is empty, as that of the only entry of `globals`.
 */
const MAP_OF = {
  key: 'keys',
  user: 'users',
  session: 'sessions',
  tenant: 'tenants',
  global: 'globals',
  issuer: 'issuers',
  link: 'links',
} as const satisfies Partial<Record<ChangeKind, keyof Maps>>;

const VERIFICATIONS: readonly LimitedClass[] = [
  'known_token',
  'unseen_token',
  'known_issuer_token',
  'unseen_issuer_token',
];

export class CredentialCache implements ChangeListener {
  readonly #monotonicMs: () => number;
  readonly #freshness: Freshness;
  readonly #maps: Maps;
  readonly #limiters: Limiters;
  readonly #waiting = new WaitingResolutions();

  constructor(parts: CredentialCacheParts) {
    this.#monotonicMs = parts.monotonicMs;
    this.#freshness = new Freshness(parts);
    this.#limiters = makeLimiters(parts.monotonicMs);
    this.#maps = makeMaps(parts, this.#limiters);
  }

  /**
   * Returns the principal that the credential proves, and the snapshot that a decision about it reads: the resolution
   * itself if everything is cached, otherwise a promise.
   * @param client the client's address; requests with credentials that were never valid in this process wait fairly
   *   between clients
   * @param maxWaitMs how long the request waits: a load that has not begun by this time is not begun for it; default:
   *   2000
   * @throws Fault (by rejecting) if the store does not answer, the feed is too old, or too many requests wait
   */
  resolve(
    credential: CredentialForm,
    tenant: HeaderValue,
    nowMs: number,
    client?: string,
    maxWaitMs?: number,
  ): Resolution | Promise<Resolution> {
    switch (credential.kind) {
      case 'missing':
        return MISSING;
      case 'malformed':
        return INVALID.malformed;
      case 'other_scheme':
        return INVALID.scheme;
      case 'bad_checksum':
        return INVALID.checksum;
      case 'api_key':
      case 'token':
        return this.#resolve(credential, tenant, nowMs, client, maxWaitMs);
      default:
        return credential satisfies never;
    }
  }

  /**
   * Resolves a credential as if a request had sent it, and changes nothing: a token of an issuer creates no user and
   * gives no roles.
   */
  examine(
    credential: CredentialForm,
    tenant: HeaderValue,
    nowMs: number,
    client?: string,
    maxWaitMs?: number,
  ): Resolution | Promise<Resolution> {
    if (credential.kind !== 'token') return this.resolve(credential, tenant, nowMs, client, maxWaitMs);
    return this.#resolve({ ...credential, examines: true }, tenant, nowMs, client, maxWaitMs);
  }

  /** Resolves a user as if it had authenticated, without a session. The user's status still counts. */
  resolveUser(id: UserId, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution> {
    return this.#resolve({ kind: 'user', id }, tenant, nowMs);
  }

  /** Resolves a key as if a request had sent it. The key's expiry and revocation and its owner still count. */
  resolveKey(digest: KeyDigest, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution> {
    return this.#resolve({ kind: 'api_key', digest }, tenant, nowMs);
  }

  apply(batch: readonly Change[]): void {
    for (const change of batch) this.#apply(change);
  }

  flush(position: number): void {
    for (const map of this.#stored()) map.flush(position);
    this.#clearTokens();
  }

  /** Drops all entries and rejects all running fills, while the feed stays where it is. */
  forget(): void {
    for (const map of this.#stored()) map.forget();
    this.#clearTokens();
  }

  /** Returns the maps of the store's records. */
  #stored() {
    return Object.values(MAP_OF).map((name) => this.#maps[name]);
  }

  #clearTokens(): void {
    this.#maps.tokens.clear();
    this.#maps.issuerTokens.clear();
  }

  stats() {
    const { keys, users, sessions, tenants, globals, tokens, issuers, links, issuerTokens } = this.#maps;
    const own = { keys, users, sessions, tenants, globals, tokens, issuers, links, issuer_tokens: issuerTokens };
    const maps = mapMembers(own, (map) => map.stats());
    const loads = mapMembers(this.#limiters, (limiter) => limiter.stats());
    return {
      maps,
      fillsInFlight: loads.rules.inFlight + loads.known.inFlight + loads.unseen.inFlight,
      verificationsInFlight: VERIFICATIONS.reduce((sum, name) => sum + loads[name].inFlight, 0),
      waiting: this.#waiting.size,
      loads,
      rejectedResolutions: this.#waiting.stats(),
      rulesBytes: maps.tenants.weight + maps.globals.weight,
    } satisfies CacheStats;
  }

  #resolve(
    subject: Subject,
    tenant: HeaderValue,
    nowMs: number,
    client?: string,
    maxWaitMs?: number,
  ): Resolution | Promise<Resolution> {
    const found = this.#lookUp(subject, tenant, nowMs);
    if (found !== undefined && 'identity' in found) return found;
    return this.#resolveCold(() => this.#lookUp(subject, tenant, nowMs), found?.unseen === true, client, maxWaitMs);
  }

  /** Returns undefined if nothing cached may be trusted now. */
  #lookUp(subject: Subject, tenant: HeaderValue, nowMs: number): LookupResult | undefined {
    const monotonicMs = this.#monotonicMs();
    if (!this.#freshness.holds(monotonicMs)) return undefined;
    return lookUp({ maps: this.#maps, header: tenant, nowMs, monotonicMs }, subject);
  }

  async #resolveCold(
    look: () => LookupResult | undefined,
    unseen: boolean,
    client: string | undefined,
    maxWaitMs = DEFAULT_MAX_WAIT_MS,
  ): Promise<Resolution> {
    const patience: Patience = { client: networkOf(client) ?? '', untilMs: this.#monotonicMs() + maxWaitMs };
    const leave = this.#waiting.enter(unseen, patience.client);
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const resolution = await this.#round(look, patience);
        if (resolution !== undefined) return resolution;
      }
      throw new Fault('the data of a request kept changing while it was loaded');
    } finally {
      leave();
    }
  }

  /**
   * Loads the missing data, stage by stage. Returns undefined if a load was not stored, or if an entry was removed
   * before its use.
   */
  async #round(look: () => LookupResult | undefined, patience: Patience): Promise<Resolution | undefined> {
    for (let step = 0; step < STEPS_PER_ROUND; step++) {
      const found = look();
      if (found === undefined) await this.#freshness.restore();
      else if ('identity' in found) return found;
      else if (!(await allStored(found, patience))) return undefined;
    }
    return undefined;
  }

  #apply({ kind, key, seq }: Change): void {
    switch (kind) {
      case 'signing_keys':
        this.#maps.tokens.clear();
        break;
      case 'prices':
        // No decision reads them.
        break;
      case 'issuer_sessions':
        this.#maps.sessions.applyToGroup(key, seq);
        break;
      default:
        this.#maps[MAP_OF[kind]].apply(key, seq);
    }
  }
}

async function allStored({ missing }: Missing, patience: Patience): Promise<boolean> {
  const stored = await Promise.all(missing.map((load) => load(patience)));
  return !stored.includes(false);
}
