/** What the live cache asks of the store, and what the change feed tells it. `store` implements these; `src/server` wires them. */

import type { KeyDigest, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { KeyRecord, PolicyRecord, SessionRecord, TenantRecord, UserRecord } from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';

/** A value as one statement saw it, with the feed's position in that same statement's snapshot. */
export interface Loaded<T> {
  readonly value: T;
  readonly asOf: number;
}

/**
 * Rejects with a Fault when the store cannot answer in time; undefined means: there is no such thing. The rules of a tenant, and the
 * global ones, may be large, so they come as steps that read them; a step may throw a Fault.
 */
export interface CacheLoader {
  /** @param known whether the key was found before: then its load must not wait for loads of keys that never were */
  key(digest: KeyDigest, known: boolean): Promise<Loaded<KeyRecord | undefined>>;
  user(id: UserId): Promise<Loaded<UserRecord | undefined>>;
  session(id: SessionId): Promise<Loaded<SessionRecord | undefined>>;
  /** Deleted tenants are undefined. */
  tenant(id: TenantId): Promise<Loaded<Steps<TenantRecord> | undefined>>;
  globalPolicies(): Promise<Loaded<Steps<readonly PolicyRecord[]>>>;
}

export type ChangeKind = 'key' | 'user' | 'session' | 'tenant' | 'global' | 'signing_keys';

export interface Change {
  readonly seq: number;
  readonly kind: ChangeKind;
  /** The digest of a key, the id of a user, session or tenant; empty for `global` and `signing_keys`. */
  readonly key: string;
}

/** Whoever keeps a cache that the feed holds true. Both calls are synchronous, so a batch lands in one go. */
export interface ChangeListener {
  apply(batch: readonly Change[]): void;
  /** Everything cached may be wrong: the feed lost its place, or its epoch changed. `position` is where it reads on from. */
  flush(position: number): void;
}

/** How fresh the feed is, for the staleness bound. */
export interface FeedClock {
  /** Monotonic milliseconds (`performance.now()`) at the start of the last poll that succeeded; -Infinity before the first. */
  readonly polledAtMs: number;
  /** Reads the feed now and applies what is there. Resolves when everything committed before the call is applied; rejects with a Fault when it cannot. */
  catchUp(): Promise<void>;
}

/** Checks an access token's signature and claims. `identity` implements it. Never rejects for a bad token; rejects with a Fault alone. */
export interface TokenVerifier {
  verify(token: string): Promise<VerifiedToken>;
}

export type VerifiedToken =
  | {
      readonly kind: 'valid';
      readonly userId: UserId;
      readonly sessionId: SessionId;
      /** Milliseconds since the epoch of `exp` plus the clock tolerance: from then on the token is expired. */
      readonly validUntilMs: number;
      /** Until then the token is not valid yet (`iat` less the clock tolerance). */
      readonly validFromMs: number;
    }
  | { readonly kind: 'expired' }
  | { readonly kind: 'invalid'; readonly reason: 'malformed' | 'signature' };
