/** The ports of the credential cache. `store` and `identity` implement them, and `src/server` wires them. */

import type { InvalidReason } from '../decision/model.ts';
import type { IssuerId, IssuerName, KeyDigest, RoleName, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { IssuerTokenTimes } from '../domain/issuer-token-times.ts';
import type {
  ChangeKind,
  IssuerRecord,
  IssuerUsers,
  KeyRecord,
  LinkRecord,
  PolicyRecord,
  ProofRecord,
  SessionRecord,
  TenantRecord,
  UserRecord,
} from '../domain/records.ts';
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
  /**
   * The enabled issuer of a value of `iss`, otherwise a disabled one.
   * @param known as for keys
   */
  issuer(value: string, known: boolean): Promise<Loaded<IssuerRecord | undefined>>;
  /** The keys and the user of a subject of an issuer. A subject that proves nothing has an empty record. */
  link(issuerId: IssuerId, subject: string): Promise<Loaded<LinkRecord>>;
}

export interface Change {
  readonly seq: number;
  readonly kind: ChangeKind;
  /**
   * The digest of a key, the id of a user, session or tenant, the value of `iss` of an issuer, the id of the issuer with
   * a space and the subject of a link; empty for `global`, `prices` and `signing_keys`.
   */
  readonly key: string;
}

/** A cache that the feed invalidates. Both calls are synchronous, so a batch is applied in one step. */
export interface ChangeListener {
  /** False while what it holds may be older than a batch, because it reads it again. Default: true. */
  readonly isCurrent?: boolean;
  /** Resolves when no such read is under way, whether or not the last one succeeded. Never rejects. */
  settled?(): Promise<void>;
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
  /** Reports whether the token has the header of this installation's tokens. Another issuer may write the same. */
  hasOwnHeader(token: string): boolean;
}

interface ValidToken {
  readonly kind: 'valid';
  readonly sessionId: SessionId;
  /** `exp` plus the clock tolerance, in milliseconds since the epoch: the token is expired at this time and later. */
  readonly validUntilMs: number;
  /** `iat` less the clock tolerance: the token is not valid before this time. */
  readonly validFromMs: number;
}

export type VerifiedToken =
  | (ValidToken & { readonly userId: UserId; readonly keyDigest?: undefined })
  /** The session belongs to a key without a secret. */
  | (ValidToken & { readonly userId?: undefined; readonly keyDigest: KeyDigest })
  | { readonly kind: 'expired' }
  | { readonly kind: 'invalid'; readonly reason: 'malformed' | 'signature' }
  /** The key of the token is none of this installation: it may be the token of another issuer. */
  | { readonly kind: 'foreign' };

/** Why the token of an issuer is invalid, before its principal is looked up. */
export type IssuerTokenReason = Extract<
  InvalidReason,
  | 'unknown_issuer'
  | 'issuer_disabled'
  | 'algorithm'
  | 'signature'
  | 'audience'
  | 'claims'
  | 'not_yet_valid'
  | 'revoked_before'
  | 'too_old'
>;

/** A token whose signature and claims were verified, without the clock. */
export type CheckedIssuerToken =
  | { readonly kind: 'valid'; readonly times: IssuerTokenTimes }
  | {
      readonly kind: 'invalid';
      readonly reason: IssuerTokenReason;
      /** True if the key set has no key with the token's `kid`: a newer set may have it. */
      readonly unknownKey: boolean;
      /** True if a key of the issuer made the signature, so that the token belongs to the issuer. */
      readonly signed: boolean;
      /** As in `IssuerTokenTimes`, if the token is valid except that the issuer refuses its age. It may be expired as well. */
      readonly validUntilMs?: number;
    };

/** The user that a verified token describes, or why it describes none. */
export type DescribedUser = IssuerUser | { readonly kind: 'none'; readonly reason: 'claims' | 'no_principal' };

interface IssuerUser {
  readonly kind: 'user';
  readonly subject: string;
  /** As the token has it: nothing is known about its form. */
  readonly email?: string;
  readonly name?: string;
  /** The roles that the mapping gives. */
  readonly roles: readonly RoleName[];
}

/**
 * A token in the form of another issuer's. `verify` comes first; the claims that the other members read count only if
 * the token is valid.
 */
export interface IssuerToken {
  /** The values of `iss` by which its issuer is found, in order. */
  readonly issuers: readonly string[];
  /** The `sub` of the token; undefined if it has none that proves anything. */
  readonly subject: string | undefined;
  /** Rejects only with a Fault. */
  verify(issuer: IssuerRecord): Promise<CheckedIssuerToken>;
  /** Returns the proofs whose subject and claims the token matches, in order. */
  matching(proofs: readonly ProofRecord[]): readonly ProofRecord[];
  user(users: IssuerUsers): DescribedUser;
}

/** Reads tokens of other issuers. `identity` implements it. */
export interface IssuerTokenReader {
  /** Returns undefined for a text in another form. */
  read(token: string): IssuerToken | undefined;
}

/** A user whose token is the first one, or newer than the one that gave the user's roles. */
export interface AdmittedIssuerUser extends Omit<IssuerUser, 'kind'> {
  readonly issuer: { readonly id: IssuerId; readonly tenantId: TenantId; readonly name: IssuerName };
  readonly iatMs: number;
}

export type Admission =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused'; readonly reason: 'email_in_use' | 'no_principal' };

/**
 * Creates the user of a token if the issuer's row says so, or gives the user the roles of a newer token, in one
 * transaction. After `admitted`, the feed announces the link, and `rolesAsOfMs` of the link is `iatMs` or later. Rejects
 * only with a Fault.
 */
export interface IssuerUserAdmission {
  admit(user: AdmittedIssuerUser): Promise<Admission>;
}

/** Asks for the keys of an issuer to be fetched, because a token names a key that they lack. Never throws. */
export interface IssuerKeyRefresh {
  request(issuerId: IssuerId): void;
}
