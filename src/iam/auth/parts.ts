/** The parts that the use cases of logins need, in addition to those of every use case. */

import type { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { Refusal } from '../../domain/errors.ts';
import type { RequestContext } from '../../http/endpoint.ts';
import type { Passwords } from '../../identity/passwords.ts';
import type { AccessTokens } from '../../identity/tokens.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { DirectoryService } from './directory-service.ts';
import type { LoginAttemptLimiter } from './login-attempt-limiter.ts';

export type PasswordVerifier = Pick<Passwords, 'hash' | 'verify' | 'needsRehash'>;

export type AccessTokenParts = Pick<AccessTokens, 'lifetimeMs' | 'issuer' | 'audience' | 'issue' | 'verify'>;

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

export interface AuthParts extends AdminParts {
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
export interface Provenance extends Pick<RequestContext, 'address' | 'throttledAs' | 'requestId' | 'nowMs'> {
  readonly userAgent: string | undefined;
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
