/**
 * Tokens of other issuers with verified signature and claims, so that each token is verified once. An entry belongs to
 * the entry of its issuer: a change of the issuer or its keys drops that entry, and its tokens are verified again.
 *
 * The result does not depend on the clock: the caller compares the token's times. An entry keeps no claims, because
 * tokens are large and each request brings its own.
 */

import type { UserPrincipal } from '../decision/model.ts';
import type { IssuerId } from '../domain/ids.ts';
import type { IssuerRecord, LinkRecord, ProofRecord } from '../domain/records.ts';
import { type LinkKey, linkKey } from './issuer-values.ts';
import type { Patience } from './load-limiter.ts';
import type { CheckedIssuerToken, IssuerKeyRefresh, IssuerToken } from './ports.ts';
import type { CacheEntry } from './read-through-cache.ts';
import { newMemo, type PrincipalMemo } from './values.ts';
import { VerificationCache, type VerificationCacheParts, type VerificationEntry } from './verification-cache.ts';

/** The keys that a token proves, as long as `link` is cached. */
export interface MatchedProofs {
  /** Undefined if the token has no subject. */
  readonly link: CacheEntry<LinkRecord> | undefined;
  /** The keys with exactly the token's subject, and the keys whose glob matches it. */
  readonly exact: readonly ProofRecord[];
  readonly globs: readonly ProofRecord[];
  /** Monotonic milliseconds at which the entries are looked up again, which marks them as used. */
  readonly untilMs: number;
}

/** An admission of the token's user, as long as `link` is cached. */
interface PastAdmission {
  readonly link: CacheEntry<LinkRecord>;
  readonly refused: 'email_in_use' | 'no_principal' | undefined;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
}

export interface IssuerTokenEntry extends VerificationEntry {
  readonly issuer: CacheEntry<IssuerRecord>;
  readonly checked: CheckedIssuerToken;
  /** The link of `sub`, which proves keys; undefined = the token has no such subject. */
  readonly keyLink: LinkKey | undefined;
  /** The link of the claim that identifies users, or why the token proves no user. */
  readonly userLink: LinkKey | { readonly reason: 'claims' | 'no_principal' };
  /** For tokens of users. */
  readonly memo: PrincipalMemo<UserPrincipal | undefined>;
  proofs: MatchedProofs | undefined;
  user: CacheEntry<LinkRecord> | undefined;
  admission: PastAdmission | undefined;
}

interface IssuerTokensParts extends VerificationCacheParts {
  readonly refresh: IssuerKeyRefresh;
  readonly holds: (issuer: CacheEntry<IssuerRecord>, monotonicMs: number) => boolean;
}

export class IssuerTokens extends VerificationCache<IssuerTokenEntry> {
  readonly #parts: IssuerTokensParts;

  constructor(parts: IssuerTokensParts) {
    super(parts);
    this.#parts = parts;
  }

  /**
   * Verifies a token. If it names several issuers, it belongs to the one whose key signed it: each tenant chooses the
   * values of its issuers, and must not make the tokens of another tenant's issuer invalid. If the keys of several
   * did, it belongs to the first of these.
   * @param issuers the entries of its issuers, in the order of `byValueSince`; if one is dropped before the end, nothing is stored
   */
  fill(
    digest: string,
    token: IssuerToken,
    issuers: readonly CacheEntry<IssuerRecord>[],
    patience: Patience,
  ): Promise<boolean> {
    return this.join(digest, patience, () => this.#verify(digest, token, issuers));
  }

  protected override holds({ issuer }: IssuerTokenEntry, monotonicMs: number): boolean {
    return this.#parts.holds(issuer, monotonicMs);
  }

  async #verify(digest: string, token: IssuerToken, issuers: readonly CacheEntry<IssuerRecord>[]): Promise<boolean> {
    const verifiedAtMs = Math.floor(this.#parts.monotonicMs());
    let found: Pick<IssuerTokenEntry, 'issuer' | 'checked'> | undefined;
    const withoutKey: IssuerId[] = [];
    for (const issuer of issuers) {
      if (!issuer.current) return this.rejectFill();
      const checked = await token.verify(issuer.value);
      if (!issuer.current) return this.rejectFill();
      const isSigned = checked.kind === 'valid' || checked.signed;
      if (found === undefined || isSigned) found = { issuer, checked };
      if (isSigned) break;
      if (checked.unknownKey && issuer.value.keysFetchedAtMs !== undefined) withoutKey.push(issuer.value.id);
    }
    if (found === undefined) return this.rejectFill();
    const { issuer, checked } = found;
    const record = issuer.value;
    const keyLink = token.subject === undefined ? undefined : linkKey(record.id, token.subject);
    const entry: IssuerTokenEntry = {
      issuer,
      checked,
      keyLink,
      userLink: userLinkOf(token, record),
      verifiedAtMs,
      memo: newMemo(undefined),
      proofs: undefined,
      user: undefined,
      admission: undefined,
    };
    this.store(digest, entry, checked.kind === 'valid');
    if (checked.kind === 'invalid' && !checked.signed) for (const id of withoutKey) this.#parts.refresh.request(id);
    return true;
  }
}

function userLinkOf(token: IssuerToken, { id, users }: IssuerRecord): IssuerTokenEntry['userLink'] {
  const described = users === undefined ? undefined : token.user(users);
  if (described === undefined) return { reason: 'no_principal' };
  return described.kind === 'user' ? linkKey(id, described.subject) : { reason: described.reason };
}
