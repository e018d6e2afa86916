/**
 * The live cache: from a credential's form to the identity and the world that a decision looks at. Warm, nothing here waits.
 *
 * A resolution is always taken in one synchronous step out of entries that each show every change applied here (live-map.ts). What is
 * missing is loaded and the look-up starts again from the credential, so that nothing that was replaced meanwhile is used.
 */

import { parseAddress } from '../decision/address.ts';
import type { HeaderValue } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { Fault } from '../domain/errors.ts';
import type { KeyDigest, UserId } from '../domain/ids.ts';
import { Freshness } from './freshness.ts';
import { type LimitedClass, type Limiters, makeLimiters } from './limits.ts';
import type { LimiterStats, Patience } from './load-limiter.ts';
import { DEPTH, type Found, GLOBAL, lookUp, type Maps, type Missing, type Subject } from './lookup.ts';
import { type MapsParts, makeMaps } from './maps.ts';
import type { Change, ChangeListener, FeedClock } from './ports.ts';
import type { MapStats } from './read-through-cache.ts';
import { INVALID, MISSING, type Resolution } from './resolution.ts';
import { Waiting, type WaitingStats } from './waiting.ts';

export type { Resolution } from './resolution.ts';

/** How often a resolution starts again when what it loaded was replaced meanwhile. */
export const ROUNDS = 3;
/** How long a request waits for its resolution, in milliseconds, if it does not say. */
const DEFAULT_MAX_WAIT_MS = 2000;
/** The feed is read at most once, then come the loads, then the look-up that finds everything. */
const STEPS_PER_ROUND = 1 + DEPTH + 1;

export interface CredentialCacheParts extends MapsParts {
  readonly feed: FeedClock;
  /** Without a successful poll of the feed for that long, nothing cached is trusted. */
  readonly maxStalenessMs: number;
}

export interface CredentialCacheStats {
  readonly maps: { readonly [Name in Exclude<keyof Maps, 'builtinRoles'>]: MapStats };
  readonly fillsInFlight: number;
  readonly verificationsInFlight: number;
  /** Resolutions that wait for a load. */
  readonly waiting: number;
  /** The loads of each class. */
  readonly loads: { readonly [Name in LimitedClass]: LimiterStats };
  /** Resolutions that were rejected because too many waited. */
  readonly rejectedResolutions: WaitingStats;
  /** Estimated bytes of the compiled rules of tenants and of the global policies. */
  readonly rulesBytes: number;
}

export class CredentialCache implements ChangeListener {
  readonly #monotonicMs: () => number;
  readonly #freshness: Freshness;
  readonly #maps: Maps;
  readonly #limiters: Limiters;
  readonly #waiting = new Waiting();

  constructor(parts: CredentialCacheParts) {
    this.#monotonicMs = parts.monotonicMs;
    this.#freshness = new Freshness(parts);
    this.#limiters = makeLimiters(parts.monotonicMs);
    this.#maps = makeMaps(parts, this.#limiters);
  }

  /**
   * Returns the principal that the credential proves, and the part of the world that a decision about it looks at: the value itself
   * when everything is in memory; else a promise.
   * @param client the client's address; requests with credentials that were never valid here wait fairly between clients
   * @param maxWaitMs how long the request waits: a load that has not begun by then is not begun on its behalf; default: 2000
   * @throws Fault (by rejecting) when it cannot be told: the store does not answer, the feed is too old, too much is under way
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

  /** As if the user had proved themselves, with a session of no name. Their status still counts. */
  resolveUser(id: UserId, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution> {
    return this.#resolve({ kind: 'user', id }, tenant, nowMs);
  }

  /** As if the key had been shown. Its expiry, its revocation and its owner still count. */
  resolveKey(digest: KeyDigest, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution> {
    return this.#resolve({ kind: 'api_key', digest }, tenant, nowMs);
  }

  apply(batch: readonly Change[]): void {
    for (const change of batch) this.#apply(change);
  }

  flush(position: number): void {
    const { keys, users, sessions, tenants, globals, tokens } = this.#maps;
    for (const map of [keys, users, sessions, tenants, globals]) map.flush(position);
    tokens.clear();
  }

  /** Drops everything cached and everything under way, while the feed stays where it is. */
  forget(): void {
    const { keys, users, sessions, tenants, globals, tokens } = this.#maps;
    for (const map of [keys, users, sessions, tenants, globals]) map.forget();
    tokens.clear();
  }

  stats(): CredentialCacheStats {
    const { keys, users, sessions, tenants, globals, tokens } = this.#maps;
    const { rules, known, unseen, known_token, unseen_token } = this.#limiters;
    const loads = {
      rules: rules.stats(),
      known: known.stats(),
      unseen: unseen.stats(),
      known_token: known_token.stats(),
      unseen_token: unseen_token.stats(),
    };
    return {
      maps: {
        keys: keys.stats(),
        users: users.stats(),
        sessions: sessions.stats(),
        tenants: tenants.stats(),
        globals: globals.stats(),
        tokens: tokens.stats(),
      },
      fillsInFlight: loads.rules.inFlight + loads.known.inFlight + loads.unseen.inFlight,
      verificationsInFlight: loads.known_token.inFlight + loads.unseen_token.inFlight,
      waiting: this.#waiting.size,
      loads,
      rejectedResolutions: this.#waiting.stats(),
      rulesBytes: tenants.stats().weight + globals.stats().weight,
    };
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
    return this.#resolveCold(subject, tenant, nowMs, client, maxWaitMs, found?.unseen === true);
  }

  /** Undefined when nothing cached is to be trusted now. */
  #lookUp(subject: Subject, tenant: HeaderValue, nowMs: number): Found | undefined {
    const monotonicMs = this.#monotonicMs();
    return this.#freshness.holds(monotonicMs) ? lookUp(this.#maps, subject, tenant, nowMs, monotonicMs) : undefined;
  }

  async #resolveCold(
    subject: Subject,
    tenant: HeaderValue,
    nowMs: number,
    client: string | undefined,
    maxWaitMs: number = DEFAULT_MAX_WAIT_MS,
    unseen: boolean,
  ): Promise<Resolution> {
    const patience: Patience = { client: networkOf(client), untilMs: this.#monotonicMs() + maxWaitMs };
    const leave = this.#waiting.enter(unseen, patience.client);
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const resolution = await this.#round(subject, tenant, nowMs, patience);
        if (resolution !== undefined) return resolution;
      }
      throw new Fault('the data of a request kept changing while it was loaded');
    } finally {
      leave();
    }
  }

  /** Loads what is missing, stage by stage; undefined when something did not land, or went again before it was used. */
  async #round(
    subject: Subject,
    tenant: HeaderValue,
    nowMs: number,
    patience: Patience,
  ): Promise<Resolution | undefined> {
    for (let step = 0; step < STEPS_PER_ROUND; step++) {
      const found = this.#lookUp(subject, tenant, nowMs);
      if (found === undefined) await this.#freshness.restore();
      else if ('identity' in found) return found;
      else if (!(await allStored(found, patience))) return undefined;
    }
    return undefined;
  }

  #apply({ kind, key, seq }: Change): void {
    const { keys, users, sessions, tenants, globals, tokens } = this.#maps;
    switch (kind) {
      case 'key':
        keys.apply(key, seq);
        break;
      case 'user':
        users.apply(key, seq);
        break;
      case 'session':
        sessions.apply(key, seq);
        break;
      case 'tenant':
        tenants.apply(key, seq);
        break;
      case 'global':
        globals.apply(GLOBAL, seq);
        break;
      case 'signing_keys':
        tokens.clear();
        break;
      default:
        kind satisfies never;
    }
  }
}

async function allStored({ missing }: Missing, patience: Patience): Promise<boolean> {
  const stored = await Promise.all(missing.map((load) => load(patience)));
  return !stored.includes(false);
}

/** The unit of fairness between clients. An IPv6 host has a whole /64 to send from, so that counts as one client. */
function networkOf(client: string | undefined): string {
  const parsed = client === undefined ? undefined : parseAddress(client);
  if (parsed === undefined) return '';
  return parsed.family === 4 ? `4:${parsed.a}` : `6:${parsed.a}:${parsed.b}`;
}
