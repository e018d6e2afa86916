/**
 * Access tokens: JWTs of type `at+jwt` (RFC 9068), signed with ES256 by a key of the ring. No other algorithm, type or
 * key is accepted.
 */

import { sign } from 'node:crypto';
import { compactVerify, errors } from 'jose';
import type { TokenVerifier, VerifiedToken } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import type { SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { SigningKey } from './signing-key.ts';
import type { PublishedKey } from './signing-keys.ts';
import { readClaims } from './token-claims.ts';
import { readTokenForm, tokenHeader } from './token-form.ts';

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

interface TokenSubject {
  readonly userId: UserId;
  readonly sessionId: SessionId;
  readonly tenantId: TenantId;
  readonly nowMs: number;
  /** Unique to this token. */
  readonly jti: string;
}

interface IssuedToken {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
}

const MALFORMED: VerifiedToken = Object.freeze({ kind: 'invalid', reason: 'malformed' });
const BAD_SIGNATURE: VerifiedToken = Object.freeze({ kind: 'invalid', reason: 'signature' });
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

  /** The `iss` of this installation's tokens. */
  get issuer(): string {
    return this.#parts.issuer;
  }

  get lifetimeMs(): number {
    return this.#parts.ttlSeconds * 1000;
  }

  async issue({ userId, sessionId, tenantId, nowMs, jti }: TokenSubject): Promise<IssuedToken> {
    const { keys, issuer, audience, ttlSeconds } = this.#parts;
    const iat = Math.floor(nowMs / 1000);
    const claims = {
      iss: issuer,
      aud: audience,
      sub: userId,
      iat,
      exp: iat + ttlSeconds,
      jti,
      sid: sessionId,
      tenant_id: tenantId,
    };
    const key = keys.current();
    const signed = `${encoded(tokenHeader(key.kid))}.${encoded(claims)}`;
    // RFC 7518, section 3.4: the signature is R and S side by side. It is made synchronously, because a thread would
    // cost more than the signature.
    const signature = sign('sha256', Buffer.from(signed), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
    return { token: `${signed}.${signature.toString('base64url')}`, expiresIn: ttlSeconds };
  }

  /** Only a token that is otherwise valid counts as expired. */
  async verify(token: string): Promise<VerifiedToken> {
    const parts = readTokenForm(token);
    if (parts === undefined) {
      return MALFORMED;
    }
    const key = await this.#parts.keys.find(parts.kid);
    if (key === undefined || !(await isSignedBy(key, token))) {
      return BAD_SIGNATURE;
    }
    const claims = readClaims(parts.payload, this.#parts.issuer, this.#parts.audience);
    if (claims === undefined) {
      return MALFORMED;
    }
    const nowMs = this.#parts.clock();
    const validFromMs = claims.iat * 1000 - CLOCK_TOLERANCE_MS;
    const validUntilMs = claims.exp * 1000 + CLOCK_TOLERANCE_MS;
    if (nowMs < validFromMs) {
      return MALFORMED;
    }
    if (nowMs >= validUntilMs) {
      return EXPIRED;
    }
    return { kind: 'valid', userId: claims.userId, sessionId: claims.sessionId, validUntilMs, validFromMs };
  }

  /**
   * Returns the key set (RFC 7517): the next key, the current one, and the retired ones until their tokens have
   * expired.
   */
  jwks(): { readonly keys: readonly PublishedKey[] } {
    return { keys: this.#parts.keys.published() };
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

async function isSignedBy(key: SigningKey, token: string): Promise<boolean> {
  try {
    await compactVerify(token, key.publicKey, { algorithms: ['ES256'] });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) {
      return false;
    }
    throw new Fault('a signature could not be checked', { cause: error });
  }
}
