/**
 * The live cache: from a credential's form to the identity and the world that a decision looks at. Warm, nothing here waits.
 *
 * A resolution is always taken in one synchronous step out of entries that each show every change applied here (live-map.ts). What is
 * missing is loaded and the look-up starts again from the credential, so that nothing that was replaced meanwhile is used.
 */

import { compilePolicies, compileTenant } from '../decision/compile.ts';
import type { HeaderValue } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import { Fault } from '../domain/errors.ts';
import type { KeyDigest, UserId } from '../domain/ids.ts';
import { FillGate } from './fills.ts';
import { Freshness } from './freshness.ts';
import { Interner } from './interner.ts';
import { LiveMap, MAX_TOMBSTONES, type MapStats } from './live-map.ts';
import { DEPTH, type Found, GLOBAL, lookUp, type Maps, type Missing, type Subject } from './lookup.ts';
import type { Change, ChangeListener, FeedClock, LiveSource, TokenVerifier } from './ports.ts';
import { INVALID, MISSING, type Resolution } from './resolution.ts';
import { liveKey, liveSession, liveUser, placesOfKey } from './values.ts';
import { VerifiedTokens } from './verified-tokens.ts';

export type { Resolution } from './resolution.ts';

export const MAX_FILLS = 512;
export const MAX_VERIFICATIONS = 512;
/** Resolutions that wait for a load at once. */
export const MAX_WAITING = 10_000;
/** How often a resolution starts again when what it loaded was replaced meanwhile. */
export const ROUNDS = 3;
/** The feed is read at most once, then come the loads, then the look-up that finds everything. */
const STEPS_PER_ROUND = 1 + DEPTH + 1;
const MIN_TENANTS = 1000;

export interface LiveParts {
  readonly source: LiveSource;
  readonly verifier: TokenVerifier;
  readonly feed: FeedClock;
  /** How many credentials of a kind are kept; users and sessions likewise, tenants a tenth of it. */
  readonly maxCredentials: number;
  /** Without a successful poll of the feed for that long, nothing cached is trusted. */
  readonly maxStalenessMs: number;
  /** `performance.now()`: the clock of `feed.polledAtMs`. */
  readonly monotonicMs: () => number;
  /** Of each kind; a smaller number costs loads that run long, never truth. */
  readonly maxTombstones?: number;
}

export interface LiveStats {
  readonly maps: { readonly [Name in keyof Maps]: MapStats };
  readonly fillsInFlight: number;
  readonly verificationsInFlight: number;
  /** Resolutions that wait for a load. */
  readonly waiting: number;
}

export class Live implements ChangeListener {
  readonly #monotonicMs: () => number;
  readonly #freshness: Freshness;
  readonly #maps: Maps;
  readonly #fills = new FillGate(MAX_FILLS);
  readonly #verifications = new FillGate(MAX_VERIFICATIONS);
  #waiting = 0;

  constructor(parts: LiveParts) {
    this.#monotonicMs = parts.monotonicMs;
    this.#freshness = new Freshness(parts);
    this.#maps = makeMaps(parts, this.#fills, this.#verifications);
  }

  /**
   * Who the credential proves, and the part of the world that a decision about them looks at.
   * @returns the value itself when everything is in memory; else a promise
   * @throws Fault (by rejecting) when it cannot be told: the store does not answer, the feed is too old, too much is under way
   */
  resolve(credential: CredentialForm, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution> {
    switch (credential.kind) {
      case 'missing':
        return MISSING;
      case 'malformed':
        return INVALID.malformed;
      case 'bad_checksum':
        return INVALID.checksum;
      case 'api_key':
      case 'token':
        return this.#resolve(credential, tenant, nowMs);
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

  stats(): LiveStats {
    const { keys, users, sessions, tenants, globals, tokens } = this.#maps;
    return {
      maps: {
        keys: keys.stats(),
        users: users.stats(),
        sessions: sessions.stats(),
        tenants: tenants.stats(),
        globals: globals.stats(),
        tokens: tokens.stats(),
      },
      fillsInFlight: this.#fills.inFlight,
      verificationsInFlight: this.#verifications.inFlight,
      waiting: this.#waiting,
    };
  }

  #resolve(subject: Subject, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution> {
    const found = this.#lookUp(subject, tenant, nowMs);
    return found !== undefined && 'identity' in found ? found : this.#resolveCold(subject, tenant, nowMs);
  }

  /** Undefined when nothing cached is to be trusted now. */
  #lookUp(subject: Subject, tenant: HeaderValue, nowMs: number): Found | undefined {
    const monotonicMs = this.#monotonicMs();
    return this.#freshness.holds(monotonicMs) ? lookUp(this.#maps, subject, tenant, nowMs, monotonicMs) : undefined;
  }

  async #resolveCold(subject: Subject, tenant: HeaderValue, nowMs: number): Promise<Resolution> {
    if (this.#waiting >= MAX_WAITING) throw new Fault('too many requests wait for the live cache');
    this.#waiting++;
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const resolution = await this.#round(subject, tenant, nowMs);
        if (resolution !== undefined) return resolution;
      }
      throw new Fault('what was loaded for a request kept changing meanwhile');
    } finally {
      this.#waiting--;
    }
  }

  /** Loads what is missing, stage by stage; undefined when something did not land, or went again before it was used. */
  async #round(subject: Subject, tenant: HeaderValue, nowMs: number): Promise<Resolution | undefined> {
    for (let step = 0; step < STEPS_PER_ROUND; step++) {
      const found = this.#lookUp(subject, tenant, nowMs);
      if (found === undefined) await this.#freshness.restore();
      else if ('identity' in found) return found;
      else if (!(await allLand(found))) return undefined;
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

async function allLand({ missing }: Missing): Promise<boolean> {
  const landed = await Promise.all(missing.map((load) => load()));
  return !landed.includes(false);
}

function makeMaps(
  { source, verifier, maxCredentials, monotonicMs, maxTombstones = MAX_TOMBSTONES }: LiveParts,
  gate: FillGate,
  verifications: FillGate,
): Maps {
  const capacity = maxCredentials;
  const tenantCapacity = Math.max(MIN_TENANTS, Math.ceil(maxCredentials / 10));
  const interner = new Interner(tenantCapacity);
  const common = { gate, monotonicMs, maxTombstones };
  return {
    keys: new LiveMap({
      ...common,
      capacity,
      places: placesOfKey,
      load: (digest) => source.key(digest),
      compile: (record) => liveKey(record, interner),
    }),
    users: new LiveMap({
      ...common,
      capacity,
      load: (id) => source.user(id),
      compile: (record, id) => liveUser(record, id, interner),
    }),
    sessions: new LiveMap({ ...common, capacity, load: (id) => source.session(id), compile: liveSession }),
    tenants: new LiveMap({ ...common, capacity: tenantCapacity, load: (id) => source.tenant(id), compile: compileTenant }),
    globals: new LiveMap({ ...common, capacity: 1, load: () => source.globalPolicies(), compile: compilePolicies }),
    tokens: new VerifiedTokens({ capacity, verifier, gate: verifications, monotonicMs }),
  };
}
