/** What the use cases of logging in are given to work with, beside what every use case has. */

import type { VerifiedToken } from '../../credential-cache/ports.ts';
import type { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { Refusal } from '../../domain/errors.ts';
import type { RequestId, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { AdminParts, PasswordHasher } from '../caller/caller.ts';
import type { DirectoryService } from './directory-service.ts';
import type { LoginAttemptLimiter } from './login-attempt-limiter.ts';

/** Passwords, checked. `identity` has it. */
export interface PasswordVerifier extends PasswordHasher {
  /** Takes the same time whether or not there is a hash. Rejects with a Refusal `unavailable` when the queue is full. */
  verify(hash: string | undefined, password: string): Promise<boolean>;
  /** True when the hash was made with other parameters than today's. */
  needsRehash(hash: string): boolean;
}

/** What an access token is made of. */
export interface TokenGrant {
  readonly userId: UserId;
  readonly sessionId: SessionId;
  readonly tenantId: TenantId;
  readonly nowMs: number;
  readonly jti: string;
}

/** Access tokens. `identity` has them. Its functions reject with a Fault when there is no key to work with. */
export interface AccessTokenParts {
  /** How long an access token is good for. */
  readonly lifetimeMs: number;
  /** `expiresIn` in seconds. */
  issue(grant: TokenGrant): Promise<{ readonly token: string; readonly expiresIn: number }>;
  verify(token: string): Promise<VerifiedToken>;
}

export interface LoginSettings {
  /** Lifetime of an unused refresh token. */
  readonly refreshIdleMs: number;
  /** How long a session may last, however much it is used. */
  readonly refreshMs: number;
  /** Of one account from one address. */
  readonly failuresPerAccount: number;
  /** Of one account from all addresses, unless `failuresPerAccount` is larger. */
  readonly totalAccountFailures: number;
  readonly failuresPerAddress: number;
}

export interface AuthParts extends Omit<AdminParts, 'passwords'> {
  readonly passwords: PasswordVerifier;
  readonly tokens: AccessTokenParts;
  /** What successors of refresh tokens are derived under. */
  readonly secretKey: string;
  /** A successor may have been derived under it, while the installation changes its `secret-key`. */
  readonly otherSecretKey?: string | undefined;
  readonly login: LoginSettings;
  readonly builtinRoles: BuiltinRoles;
  /** Undefined = no directory is configured. */
  readonly directory?: DirectoryService | undefined;
  /** Called when a refresh token was used by two, and its session has ended. */
  readonly onRefreshReuse?: () => void;
}

/** For the use cases that check a password. */
export interface LoginParts extends AuthParts {
  /** One for the process. */
  readonly attempts: LoginAttemptLimiter;
}

/** Where a request without a caller came from. */
export interface Provenance {
  /** Undefined = missing. */
  readonly address: string | undefined;
  /** What failed attempts are counted under beside the account: addresses, separated by a space; undefined = nothing. */
  readonly throttledAs: string | undefined;
  readonly userAgent: string | undefined;
  readonly requestId: RequestId;
  readonly nowMs: number;
}

/** What a login or a refresh hands out. */
export interface TokenPair {
  readonly accessToken: string;
  /** Seconds. */
  readonly expiresIn: number;
  readonly refreshToken: string;
  /** True when the refresh token travels in a cookie, and only there. */
  readonly cookie: boolean;
}

/** The one answer to everything that proves nobody. */
export function invalidCredential(): Refusal {
  return new Refusal('invalid_credential', 'The credential is not valid.');
}

export function tenantSuspended(): Refusal {
  return new Refusal('tenant_suspended', 'The tenant is suspended.');
}

/** An access token's own identifier: 128 random bits. */
export function makeJti(random: AuthParts['random']): string {
  return Buffer.from(random(16)).toString('base64url');
}

/**
 * For a change that is committed: this process decides by it before it answers, and if the feed cannot be read now, nothing cached
 * here is trusted any more.
 */
export async function applyHere(parts: Pick<AuthParts, 'feed' | 'flush'>): Promise<void> {
  try {
    await parts.feed.catchUp();
  } catch {
    parts.flush();
  }
}
