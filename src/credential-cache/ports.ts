/** The ports of the credential cache. `store` and `identity` implement them, and `src/server` wires them. */

import type { KeyDigest, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { KeyRecord, PolicyRecord, SessionRecord, TenantRecord, UserRecord } from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';

/** A value as one statement read it, with the feed's position in the snapshot of the same statement. */
export interface Loaded<T> {
  readonly value: T;
  readonly asOf: number;
}

/**
 * Loads records. Rejects with a Fault if the store cannot answer in time; undefined = the record does not exist. The
 * rules of a tenant and the global policies may be large, so they come as steps that read them. A step may throw a
 * Fault.
 */
export interface CacheLoader {
  /**
   * @param known whether the key was found before: then its load must not wait for loads of keys that were never found
   */
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

/** A cache that the feed invalidates. Both calls are synchronous, so a batch is applied in one step. */
export interface ChangeListener {
  apply(batch: readonly Change[]): void;
  /**
   * Everything cached may be wrong: the feed lost its position, or its epoch changed. The feed continues from
   * `position`.
   */
  flush(position: number): void;
}

/** The age of the feed's data, for the staleness bound. */
export interface FeedClock {
  /**
   * Monotonic milliseconds (`performance.now()`) at the start of the last poll that succeeded; -Infinity before the
   * first.
   */
  readonly polledAtMs: number;
  /**
   * Reads the feed and applies its changes. Resolves when everything that was committed before the call is applied.
   * Rejects with a Fault if the feed cannot be read.
   */
  catchUp(): Promise<void>;
}

/**
 * Verifies the signature and claims of access tokens. `identity` implements it. An invalid token is a result. Rejects
 * only with a Fault.
 */
export interface TokenVerifier {
  verify(token: string): Promise<VerifiedToken>;
}

export type VerifiedToken =
  | {
      readonly kind: 'valid';
      readonly userId: UserId;
      readonly sessionId: SessionId;
      /**
       * `exp` plus the clock tolerance, in milliseconds since the epoch: the token is expired at this time and later.
       */
      readonly validUntilMs: number;
      /** `iat` less the clock tolerance: the token is not valid before this time. */
      readonly validFromMs: number;
    }
  | { readonly kind: 'expired' }
  | { readonly kind: 'invalid'; readonly reason: 'malformed' | 'signature' };
