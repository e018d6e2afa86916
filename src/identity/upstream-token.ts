/**
 * Tokens for the upstream: JWTs of type `postern-upstream+jwt`, signed with ES256 by the key of access tokens. Their
 * type and audience differ from those of access tokens, so neither is accepted in place of the other (RFC 8725, sections
 * 3.9 and 3.11).
 */

import { sign } from 'node:crypto';
import type { Allow, Principal } from '../decision/model.ts';
import { narrowedPatterns } from '../decision/narrowing.ts';
import { Fault } from '../domain/errors.ts';
import type { SigningKey } from './signing-key.ts';
import { encodedPart } from './token-form.ts';

export const UPSTREAM_TOKEN_TYPE = 'postern-upstream+jwt';

export const OPTIONAL_CLAIMS = ['roles', 'scope', 'client_id', 'act'] as const;
export type OptionalClaim = (typeof OPTIONAL_CLAIMS)[number];

/** For verifiers whose clock is behind. */
const BACKDATED_SECONDS = 10;
/** Less than the headers that common servers accept. */
const MAX_TOKEN_BYTES = 8192;
/** The most pairs of a key's scope and a session's scope that are compared: a few milliseconds of work. */
const MAX_NARROWING = 2500;
/** A P-256 signature in base64url: R and S, 32 bytes each. */
const SIGNATURE_LENGTH = 86;

/** The part of an allow that a token states. It does not depend on the request, so a token serves many requests. */
export type TokenSubject = Pick<Allow, 'principal' | 'roles' | 'tenant'>;

interface UpstreamTokensParts {
  readonly keys: { current(): SigningKey };
  readonly issuer: string;
  /** The name of the platform. */
  readonly audience: string;
  /** The audience of access tokens. */
  readonly accessAudience: string;
  readonly ttlSeconds: number;
  readonly claims: readonly OptionalClaim[];
}

export interface UnsignedToken {
  readonly kid: string;
  /** The length of the whole token, in bytes. */
  readonly length: number;
  /** Signs on another thread. Rejects with a Fault. */
  sign(): Promise<string>;
}

export class UpstreamTokens {
  readonly #parts: UpstreamTokensParts;
  readonly #claims: ReadonlySet<OptionalClaim>;

  /** Throws if a verifier could not distinguish the tokens from access tokens. */
  constructor(parts: UpstreamTokensParts) {
    if (parts.audience === parts.accessAudience)
      throw new Error('tokens for the upstream need an audience that differs from that of access tokens');
    this.#parts = parts;
    this.#claims = new Set(parts.claims);
  }

  get lifetimeMs(): number {
    return this.#parts.ttlSeconds * 1000;
  }

  /**
   * Writes a token.
   * @param jti unique to this token
   * @throws Fault without a signing key, or if roles and scopes make the token longer than 8 KiB
   */
  prepare(subject: TokenSubject, nowMs: number, jti: string): UnsignedToken {
    const { keys, issuer, audience, ttlSeconds } = this.#parts;
    const key = keys.current();
    const now = Math.floor(nowMs / 1000);
    const { principal, tenant } = subject;
    const claims = {
      iss: issuer,
      aud: audience,
      sub: subjectOf(principal),
      iat: now - BACKDATED_SECONDS,
      exp: now + ttlSeconds,
      jti,
      tenant_id: tenant.id,
      ...this.#optionalClaims(subject),
    };
    const signed = `${encodedPart({ alg: 'ES256', typ: UPSTREAM_TOKEN_TYPE, kid: key.kid })}.${encodedPart(claims)}`;
    const length = signed.length + 1 + SIGNATURE_LENGTH;
    if (length > MAX_TOKEN_BYTES) throw tooLong(principal);
    return { kid: key.kid, length, sign: async () => `${signed}.${await signatureOf(signed, key)}` };
  }

  #optionalClaims({ principal, roles }: TokenSubject): object {
    const key = principal.kind === 'api_key' ? principal.id : undefined;
    const scope = scopeOf(principal);
    const lists = [this.#claims.has('roles') ? roles : [], this.#claims.has('scope') ? (scope ?? []) : []];
    // A key may have 1,000 scopes. Lists of this length are not encoded.
    if (lists.flat().reduce((length, text) => length + text.length, 0) > MAX_TOKEN_BYTES) throw tooLong(principal);
    const values: { readonly [Claim in OptionalClaim]: unknown } = {
      roles,
      scope: scope?.join(' '),
      client_id: key,
      act: key === undefined || key === subjectOf(principal) ? undefined : { sub: key },
    };
    // JSON has no member for an undefined value.
    return Object.fromEntries([...this.#claims].map((claim) => [claim, values[claim]]));
  }
}

function subjectOf(principal: Principal): string {
  return principal.kind === 'user' ? principal.id : (principal.owner?.id ?? principal.id);
}

/**
 * Returns the permissions that bound a principal's roles: the scopes of a key, within the scope of a session. Undefined if
 * nothing bounds them.
 */
function scopeOf(principal: Principal): readonly string[] | undefined {
  const { scope } = principal;
  if (principal.kind === 'user') return scope && [...scope.texts];
  const { patterns } = principal.grant;
  if (scope !== undefined && patterns.length * scope.texts.size > MAX_NARROWING) throw tooLong(principal);
  return scope === undefined ? patterns : narrowedPatterns(patterns, scope);
}

function tooLong({ id }: Principal): Fault {
  return new Fault(
    `the token for the upstream of ${id} would have more than ${MAX_TOKEN_BYTES} bytes. Give it fewer roles or scopes, or leave a claim out of upstream-token.claims`,
  );
}

/** Signs on a thread of Node's pool (RFC 7518, section 3.4: R and S side by side). */
function signatureOf(text: string, { privateKey }: SigningKey): Promise<string> {
  return new Promise((resolve, reject) => {
    sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }, (error, signature) => {
      if (error === null) resolve(signature.toString('base64url'));
      else reject(new Fault('a token for the upstream could not be signed', { cause: error }));
    });
  });
}
