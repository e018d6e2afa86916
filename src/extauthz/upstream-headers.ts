/**
 * The header that carries the token for the upstream, and the tokens that are used again: one for each principal and
 * tenant, until half of its lifetime is over.
 *
 * A token belongs to the object of its principal and to its list of roles. The credential cache replaces them when the
 * principal, its roles or its owner change, so a change ends the use of a token without a message. All sessions of a
 * user have one list of roles, and share the user's token unless their scope is narrower.
 */

import { Semaphore } from '../concurrency/semaphore.ts';
import type { Allow, Principal } from '../decision/model.ts';
import { Fault } from '../domain/errors.ts';
import type { RoleName, TenantId, UserId } from '../domain/ids.ts';
import type { UnsignedToken } from '../identity/upstream-token.ts';
import { headerName, putHeader } from './header-options.ts';
import type { UpstreamTokenHeader } from './header-spellings.ts';
import { ENCODED_NAME, UPSTREAM_TOKEN } from './own-headers.ts';
import type { RandomPool } from './random-pool.ts';
import { beginWriting, finishWriting } from './wire-write.ts';

interface UpstreamTokenSource {
  readonly lifetimeMs: number;
  prepare(subject: Allow, nowMs: number, jti: string): UnsignedToken;
}

export interface UpstreamHeadersParts {
  readonly tokens: UpstreamTokenSource;
  readonly header: UpstreamTokenHeader;
  /** Reports whether verifiers still find a key. */
  readonly isPublished: (kid: string) => boolean;
  readonly random: RandomPool;
}

/** Memory of kept tokens, in bytes. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;
/** The memory of one token in addition to its header. */
const TOKEN_BYTES = 512;
/** The tenants for which one principal's tokens are kept. Only a platform administrator acts in another tenant. */
const MAX_TENANTS = 8;
/** Signatures at a time: enough for the threads of Node's pool, and few enough that its other users wait little. */
const MAX_SIGNING = 16;
/** Checks that wait for a signature beside those: a quarter of a second on one thread. */
const MAX_WAITING = 4096;
const JTI_BYTES = 16;

/** A user, or the object that represents another principal. */
type TokenOwner = UserId | Representative;
type Representative = Record<never, never>;

interface KeptToken {
  readonly tenant: TenantId;
  readonly roles: readonly RoleName[];
  readonly kid: string;
  readonly madeAtMs: number;
  readonly bytes: number;
  /** The encoded header, or its signature under way. */
  header: Buffer | Promise<Buffer>;
}

export class UpstreamHeaders {
  readonly #parts: UpstreamHeadersParts;
  /** In the order of the newest token of each principal, the oldest first. */
  readonly #kept = new Map<TokenOwner, readonly KeptToken[]>();
  #keptBytes = 0;
  /** Tokens must not keep a principal that the credential cache has dropped: the constraints of a key may be large. */
  readonly #representatives = new WeakMap<Principal, Representative>();
  readonly #signing = new Semaphore({ permits: MAX_SIGNING, maxWaiting: MAX_WAITING });

  constructor(parts: UpstreamHeadersParts) {
    this.#parts = parts;
  }

  get header(): UpstreamTokenHeader {
    return this.#parts.header;
  }

  /**
   * Returns the header of an allow, as the field of an answer: a promise if the token must be signed.
   * @throws Fault, also as a rejection, if there is no token: the check must not be allowed then
   */
  of(allow: Allow, nowMs: number): Buffer | Promise<Buffer> {
    const tokens = this.#kept.get(this.#ownerOf(allow.principal));
    if (tokens !== undefined) {
      for (const token of tokens) if (this.#isCurrent(token, allow, nowMs)) return token.header;
    }
    return this.#make(allow, nowMs, tokens ?? []);
  }

  /** The principals with a kept token, and the memory of all tokens in bytes. */
  get kept(): { readonly principals: number; readonly bytes: number } {
    return { principals: this.#kept.size, bytes: this.#keptBytes };
  }

  #isCurrent({ tenant, roles, madeAtMs, kid }: KeptToken, allow: Allow, nowMs: number): boolean {
    const isSame = tenant === allow.tenant.id && roles === allow.roles;
    return isSame && this.#isYoung(madeAtMs, nowMs) && this.#parts.isPublished(kid);
  }

  /** In both directions, because the clock may have been set back. */
  #isYoung(madeAtMs: number, nowMs: number): boolean {
    return Math.abs(nowMs - madeAtMs) < this.#parts.tokens.lifetimeMs / 2;
  }

  #make(allow: Allow, nowMs: number, tokens: readonly KeptToken[]): Promise<Buffer> {
    const { principal, tenant, roles } = allow;
    const jti = Buffer.from(this.#parts.random.take(JTI_BYTES)).toString('base64url');
    const unsigned = this.#parts.tokens.prepare(allow, nowMs, jti);
    const signing = this.#signing.run(unsigned.sign, tenant.id);
    if (signing === undefined) throw new Fault('too many tokens for the upstream wait for their signature');
    const made: KeptToken = {
      tenant: tenant.id,
      roles,
      kid: unsigned.kid,
      madeAtMs: nowMs,
      bytes: unsigned.length + TOKEN_BYTES,
      header: signing.then((token) => {
        made.header = encodedHeader(this.#parts.header, token);
        return made.header;
      }),
    };
    const others = tokens.filter((other) => other.tenant !== tenant.id).slice(0, MAX_TENANTS - 1);
    const owner = this.#ownerOf(principal);
    this.#keep(owner, [made, ...others]);
    this.#forget(nowMs);
    signing.catch(() => this.#drop(owner, made));
    return Promise.resolve(made.header);
  }

  #ownerOf(principal: Principal): TokenOwner {
    if (principal.kind === 'user' && principal.scope === undefined) return principal.id;
    return this.#representatives.getOrInsertComputed(principal, () => ({}));
  }

  #drop(owner: TokenOwner, failed: KeptToken): void {
    this.#keep(owner, this.#kept.get(owner)?.filter((token) => token !== failed) ?? []);
  }

  #keep(owner: TokenOwner, tokens: readonly KeptToken[]): void {
    this.#keptBytes += bytesOf(tokens) - bytesOf(this.#kept.get(owner));
    this.#kept.delete(owner);
    if (tokens.length > 0) this.#kept.set(owner, tokens);
  }

  /** Forgets the principals whose newest token is too old to be used again, and the oldest while all take too much. */
  #forget(nowMs: number): void {
    for (const [owner, tokens] of this.#kept) {
      const [newest] = tokens;
      if (this.#keptBytes <= MAX_KEPT_BYTES && newest !== undefined && this.#isYoung(newest.madeAtMs, nowMs)) return;
      this.#keep(owner, []);
    }
  }
}

function bytesOf(tokens: readonly KeptToken[] = []): number {
  return tokens.reduce((sum, { bytes }) => sum + bytes, 0);
}

const NAMES = { [UPSTREAM_TOKEN]: ENCODED_NAME[UPSTREAM_TOKEN], authorization: headerName('authorization') };
/** Tags and lengths of the fields. */
const FIELD_BYTES = 64;

function encodedHeader(header: UpstreamTokenHeader, token: string): Buffer {
  const value = header === 'authorization' ? `Bearer ${token}` : token;
  const writer = beginWriting(value.length + NAMES[header].length + FIELD_BYTES);
  putHeader(writer, NAMES[header], value);
  return finishWriting(writer);
}
