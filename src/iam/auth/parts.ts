/** The parts that the use cases of logins need, in addition to those of every use case. */

import type { VerifiedToken } from '../../credential-cache/ports.ts';
import type { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { Refusal } from '../../domain/errors.ts';
import type { KeyId, RequestId, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { AdminParts, PasswordHasher } from '../caller/caller.ts';
import type { DirectoryService } from './directory-service.ts';
import type { LoginAttemptLimiter } from './login-attempt-limiter.ts';

/** Verifies passwords. The identity module implements it. */
export interface PasswordVerifier extends PasswordHasher {
  /** Takes the same time with and without a hash. Rejects with a Refusal `unavailable` if the queue is full. */
  verify(hash: string | undefined, password: string): Promise<boolean>;
  /** True if the hash has other parameters than the current ones. */
  needsRehash(hash: string): boolean;
}

/** The user or the key whose session it is. */
type TokenSubject =
  | { readonly userId: UserId; readonly keyId?: undefined }
  | { readonly userId?: undefined; readonly keyId: KeyId };

/** The other claims of an access token. */
interface TokenTerms {
  readonly sessionId: SessionId;
  readonly tenantId: TenantId;
  readonly nowMs: number;
  readonly jti: string;
  /** The permissions that narrow the session, separated by spaces. Absent: it is not narrowed. */
  readonly scope?: string | undefined;
  /** Seconds. The token lives for the shorter of this and the configured lifetime. Default: the configured lifetime. */
  readonly mostSeconds?: number | undefined;
}

/** Access tokens. The identity module implements them. The functions reject with a Fault if there is no key. */
export interface AccessTokenParts {
  /** The lifetime of an access token. */
  readonly lifetimeMs: number;
  /** The `iss` and `aud` of access tokens. */
  readonly issuer: string;
  readonly audience: string;
  /** `expiresIn` in seconds. */
  issue(grant: TokenSubject & TokenTerms): Promise<{ readonly token: string; readonly expiresIn: number }>;
  verify(token: string): Promise<VerifiedToken>;
}

export interface LoginSettings {
  /** Lifetime of an unused refresh token. */
  readonly refreshIdleMs: number;
  /** The maximum lifetime of a session, however often it is refreshed. */
  readonly refreshMs: number;
  /** The maximum of failures for one account from one address. */
  readonly failuresPerAccount: number;
  /** The maximum of failures for one account from all addresses, unless `failuresPerAccount` is larger. */
  readonly totalAccountFailures: number;
  readonly failuresPerAddress: number;
}

export interface AuthParts extends Omit<AdminParts, 'passwords'> {
  readonly passwords: PasswordVerifier;
  readonly tokens: AccessTokenParts;
  /** The key from which successors of refresh tokens are derived. */
  readonly secretKey: string;
  /** The second valid key while the installation changes its `secret-key`. A successor may be derived from it. */
  readonly otherSecretKey?: string | undefined;
  readonly login: LoginSettings;
  readonly builtinRoles: BuiltinRoles;
  /** Undefined: no directory is configured. */
  readonly directory?: DirectoryService | undefined;
  /** Called when a refresh token was used twice and its session has ended. */
  readonly onRefreshReuse?: () => void;
}

/** For the use cases that check a password. */
export interface LoginParts extends AuthParts {
  /** One for each process. */
  readonly attempts: LoginAttemptLimiter;
}

/** The source of a request without a caller. */
export interface Provenance {
  /** Undefined: missing. */
  readonly address: string | undefined;
  /** The subject of failures in addition to the account: addresses, separated by a space. Undefined: none. */
  readonly throttledAs: string | undefined;
  readonly userAgent: string | undefined;
  readonly requestId: RequestId;
  readonly nowMs: number;
}

/** The tokens of a login or a refresh. */
export interface IssuedTokens {
  readonly accessToken: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly refreshToken: string;
  /** True if the refresh token travels in a cookie, and only there. */
  readonly cookie: boolean;
}

export function tenantSuspended(): Refusal {
  return new Refusal('tenant_suspended', 'The tenant is suspended.');
}

/** Returns an access token's id: 128 random bits. */
export function makeJti(random: AuthParts['random']): string {
  return Buffer.from(random(16)).toString('base64url');
}

/**
 * Applies a committed change in this process before the response. If the feed cannot be read now, the process trusts no
 * cached data.
 */
export async function applyHere(parts: Pick<AuthParts, 'feed' | 'flush'>): Promise<void> {
  try {
    await parts.feed.catchUp();
  } catch {
    parts.flush();
  }
}
