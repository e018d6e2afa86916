/**
 * Access tokens: JWTs of type `at+jwt` (RFC 9068), signed with ES256 by a key of the ring. No other algorithm, type or
 * key is accepted.
 */

import { sign } from 'node:crypto';
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import type { TokenVerifier, VerifiedToken } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import type { KeyId, SessionId, TenantId, UserId } from '../domain/ids.ts';
import { digestOfProof } from './api-keys.ts';
import type { SigningKey } from './signing-key.ts';
import type { PublishedKey } from './signing-keys.ts';
import { readClaims } from './token-claims.ts';
import { encodedPart, hasOwnHeader, readTokenForm, tokenHeader } from './token-form.ts';

/** The accepted difference between the clocks of two servers. */
export const CLOCK_TOLERANCE_MS = 5000;

interface TokenKeys {
  current(): SigningKey;
  find(kid: string): Promise<SigningKey | undefined>;
  published(): readonly PublishedKey[];
}

interface AccessTokensParts {
  readonly keys: TokenKeys;
  readonly issuer: string;
  readonly audience: string;
  readonly ttlSeconds: number;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

/** The user or the key whose session it is. */
type Subject =
  | { readonly userId: UserId; readonly keyId?: undefined }
  | { readonly userId?: undefined; readonly keyId: KeyId };

interface TokenTerms {
  readonly sessionId: SessionId;
  readonly tenantId: TenantId;
  readonly nowMs: number;
  /** Unique to this token. */
  readonly jti: string;
  /** The permissions that narrow the session, separated by spaces. Absent: it is not narrowed. */
  readonly scope?: string | undefined;
  /** Seconds. The token lives for the shorter of this and the configured lifetime. Default: the configured lifetime. */
  readonly mostSeconds?: number | undefined;
}

interface IssuedToken {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
}

const MALFORMED: VerifiedToken = Object.freeze({ kind: 'invalid', reason: 'malformed' });
const BAD_SIGNATURE: VerifiedToken = Object.freeze({ kind: 'invalid', reason: 'signature' });
const FOREIGN: VerifiedToken = Object.freeze({ kind: 'foreign' });
const EXPIRED: VerifiedToken = Object.freeze({ kind: 'expired' });

export class AccessTokens implements TokenVerifier {
  readonly #parts: AccessTokensParts;

  /** Throws if issuer, audience or lifetime is missing: a check would then be skipped unnoticed. */
  constructor(parts: AccessTokensParts) {
    if (parts.issuer === '' || parts.audience === '') {
      throw new Error('access tokens need an issuer and an audience');
    }
    if (!Number.isSafeInteger(parts.ttlSeconds) || parts.ttlSeconds < 1) {
      throw new Error('access tokens need a lifetime of at least one second');
    }
    this.#parts = parts;
  }

  get audience(): string {
    return this.#parts.audience;
  }

  /** The `iss` of this installation's tokens. */
  get issuer(): string {
    return this.#parts.issuer;
  }

  get lifetimeMs(): number {
    return this.#parts.ttlSeconds * 1000;
  }

  async issue(subject: Subject & TokenTerms): Promise<IssuedToken> {
    const { userId, keyId, sessionId, tenantId, nowMs, jti, scope, mostSeconds } = subject;
    const { keys, issuer, audience } = this.#parts;
    const ttlSeconds = Math.min(this.#parts.ttlSeconds, mostSeconds ?? Number.POSITIVE_INFINITY);
    const iat = Math.floor(nowMs / 1000);
    const claims = {
      iss: issuer,
      aud: audience,
      sub: userId ?? keyId,
      iat,
      exp: iat + ttlSeconds,
      jti,
      sid: sessionId,
      tenant_id: tenantId,
      // See `readClaims`.
      ...(scope === undefined ? {} : { scope, nbf: iat }),
    };
    const key = keys.current();
    const signed = `${encodedPart(tokenHeader(key.kid))}.${encodedPart(claims)}`;
    // RFC 7518, section 3.4: the signature is R and S side by side. It is made synchronously, because a thread would
    // cost more than the signature.
    const signature = sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
    return { token: `${signed}.${signature.toString('base64url')}`, expiresIn: ttlSeconds };
  }

  hasOwnHeader(token: string): boolean {
    return hasOwnHeader(token);
  }

  /**
   * Only a token that is otherwise valid counts as expired. One that is not valid yet, because the clock of its issuer
   * is ahead, is returned with `validFromMs`: the caller compares it, because the result is kept longer than that.
   */
  async verify(token: string): Promise<VerifiedToken> {
    const parts = readTokenForm(token);
    if (parts === undefined) {
      return MALFORMED;
    }
    const key = await this.#parts.keys.find(parts.kid);
    if (key === undefined) {
      return FOREIGN;
    }
    if (!(await isSignedBy(key, token))) {
      return BAD_SIGNATURE;
    }
    const claims = readClaims(parts.payload, this.#parts.issuer, this.#parts.audience);
    if (claims === undefined) {
      return MALFORMED;
    }
    const validFromMs = claims.iat * 1000 - CLOCK_TOLERANCE_MS;
    const validUntilMs = claims.exp * 1000 + CLOCK_TOLERANCE_MS;
    if (this.#parts.clock() >= validUntilMs) {
      return EXPIRED;
    }
    const { sessionId, subject } = claims;
    return subject.kind === 'user'
      ? { kind: 'valid', userId: subject.id, sessionId, validUntilMs, validFromMs }
      : { kind: 'valid', keyDigest: digestOfProof(subject.id), sessionId, validUntilMs, validFromMs };
  }

  /**
   * Returns the key set (RFC 7517): the next key, the current one, and the retired ones until their tokens have
   * expired.
   */
  jwks(): { readonly keys: readonly PublishedKey[] } {
    return { keys: this.#parts.keys.published() };
  }
}

async function isSignedBy(key: SigningKey, token: string): Promise<boolean> {
  try {
    await compactVerify(token, key.publicKey, { algorithms: ['ES256'] });
    return true;
  } catch (error) {
    if (error instanceof JOSEError) {
      return false;
    }
    throw new Fault('a signature could not be checked', { cause: error });
  }
}
