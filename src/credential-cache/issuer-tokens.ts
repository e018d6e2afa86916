/**
 * Tokens of other issuers with verified signature and claims, so that each token is verified once. An entry belongs to
 * the entry of its issuer: a change of the issuer or its keys drops that entry, and its tokens are verified again.
 *
 * The result does not depend on the clock: the caller compares the token's times. An entry keeps no claims, because
 * tokens are large and each request brings its own.
 */

import { LRUCache } from 'lru-cache';
import type { UserPrincipal } from '../decision/model.ts';
import type { IssuerRecord, LinkRecord, ProofRecord } from '../domain/records.ts';
import { Fills } from './fills.ts';
import { type LinkKey, linkKey } from './issuer-values.ts';
import { KnownCredentials } from './known-credentials.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';
import { NegativeCache } from './negative-cache.ts';
import type { CheckedIssuerToken, IssuerKeyRefresh, IssuerToken } from './ports.ts';
import { type CacheEntry, MAX_ABSENT, MAX_ENTRY_AGE_MS, type MapStats } from './read-through-cache.ts';
import { newMemo, type PrincipalMemo } from './values.ts';
import { REJECTED_TTL_MS } from './verified-tokens.ts';

/** The keys that a token proves, as long as `link` is cached. */
export interface MatchedProofs {
  /** Undefined if the token has no subject. */
  readonly link: CacheEntry<LinkRecord> | undefined;
  /** Those with exactly the token's subject, and those whose glob matches it. */
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

export interface IssuerTokenEntry {
  readonly issuer: CacheEntry<IssuerRecord>;
  readonly checked: CheckedIssuerToken;
  /** The link of `sub`, which proves keys; undefined = the token has no such subject. */
  readonly keyLink: LinkKey | undefined;
  /** The link of the claim that identifies users, or why the token proves no user. */
  readonly userLink: LinkKey | { readonly reason: 'claims' | 'no_principal' };
  /** Whole monotonic milliseconds, read before the verification began. */
  readonly verifiedAtMs: number;
  /** For tokens of users. */
  readonly memo: PrincipalMemo<UserPrincipal | undefined>;
  proofs: MatchedProofs | undefined;
  user: CacheEntry<LinkRecord> | undefined;
  admission: PastAdmission | undefined;
}

interface IssuerTokensParts {
  readonly capacity: number;
  readonly limiter: LoadLimiter;
  /** For tokens that were never valid in this process. */
  readonly unseenLimiter: LoadLimiter;
  readonly refresh: IssuerKeyRefresh;
  readonly monotonicMs: () => number;
  /** Milliseconds since the epoch. */
  readonly holds: (issuer: CacheEntry<IssuerRecord>, monotonicMs: number) => boolean;
}

export class IssuerTokens {
  readonly #parts: IssuerTokensParts;
  readonly #entries: LRUCache<string, IssuerTokenEntry>;
  readonly #rejected = new NegativeCache<IssuerTokenEntry>(MAX_ABSENT, REJECTED_TTL_MS);
  readonly #fills = new Fills();
  readonly #known: KnownCredentials;
  #hits = 0;
  #misses = 0;
  #rejectedFills = 0;

  constructor(parts: IssuerTokensParts) {
    this.#parts = parts;
    this.#entries = new LRUCache({ max: parts.capacity });
    this.#known = new KnownCredentials(parts.capacity);
  }

  /** Returns the entry of the token; undefined = the token must be verified. */
  find(digest: string, monotonicMs: number): IssuerTokenEntry | undefined {
    const valid = this.#entries.get(digest);
    const entry = valid ?? (this.#rejected.size === 0 ? undefined : this.#rejected.get(digest, monotonicMs));
    if (entry === undefined || monotonicMs - entry.verifiedAtMs >= MAX_ENTRY_AGE_MS) return undefined;
    if (!this.#parts.holds(entry.issuer, monotonicMs)) return undefined;
    this.#hits++;
    return entry;
  }

  /** Like `ReadThroughCache.isKnown`. */
  isKnown(digest: string): boolean {
    return this.#known.has(digest);
  }

  /**
   * Verifies the token, or waits for the running verification. Like `ReadThroughCache.fill`.
   * @param issuer the entry of its issuer; if it is dropped before the end, nothing is stored
   */
  fill(digest: string, token: IssuerToken, issuer: CacheEntry<IssuerRecord>, patience: Patience): Promise<boolean> {
    this.#misses++;
    const { limiter, unseenLimiter } = this.#parts;
    return this.#fills.join(digest, this.isKnown(digest) ? limiter : unseenLimiter, patience, () =>
      this.#verify(digest, token, issuer),
    );
  }

  clear(): void {
    this.#entries.clear();
    this.#rejected.clear();
  }

  stats(): MapStats {
    return {
      size: this.#entries.size,
      weight: this.#entries.size,
      absent: this.#rejected.size,
      tombstones: 0,
      hits: this.#hits,
      misses: this.#misses,
      rejectedFills: this.#rejectedFills,
    };
  }

  async #verify(digest: string, token: IssuerToken, issuer: CacheEntry<IssuerRecord>): Promise<boolean> {
    if (!issuer.current) return this.#rejectFill();
    const record = issuer.value;
    const verifiedAtMs = Math.floor(this.#parts.monotonicMs());
    const checked = await token.verify(record);
    if (!issuer.current) return this.#rejectFill();
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
    this.#store(digest, entry);
    if (checked.kind === 'invalid' && checked.unknownKey && record.keysFetchedAtMs !== undefined)
      this.#parts.refresh.request(record.id);
    return true;
  }

  #rejectFill(): false {
    this.#rejectedFills++;
    return false;
  }

  #store(digest: string, entry: IssuerTokenEntry): void {
    if (entry.checked.kind === 'valid') {
      this.#rejected.delete(digest);
      this.#known.add(digest);
      this.#entries.set(digest, entry);
    } else {
      this.#entries.delete(digest);
      this.#rejected.put(digest, entry, entry.verifiedAtMs);
    }
  }
}

function userLinkOf(token: IssuerToken, { id, users }: IssuerRecord): IssuerTokenEntry['userLink'] {
  const described = users === undefined ? undefined : token.user(users);
  if (described === undefined) return { reason: 'no_principal' };
  return described.kind === 'user' ? linkKey(id, described.subject) : { reason: described.reason };
}
