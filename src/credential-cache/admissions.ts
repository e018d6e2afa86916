/**
 * Admits the users of issuers: the first token of a subject may create its user, and a newer token gives the user the
 * roles of its mapping. Everything else about a user is read from the cache.
 */

import type { LinkRecord } from '../domain/records.ts';
import { Fills } from './fills.ts';
import type { IssuerTokenEntry } from './issuer-tokens.ts';
import type { LoadLimiter, Patience } from './load-limiter.ts';
import type { AdmittedIssuerUser, FeedClock, IssuerUserAdmission } from './ports.ts';
import type { CacheEntry } from './read-through-cache.ts';

/** How long a token whose admission was refused asks for no other one, unless its link changes. */
const REFUSED_TTL_MS = 10_000;

interface AdmissionsParts {
  readonly admission: IssuerUserAdmission;
  readonly feed: FeedClock;
  readonly limiter: LoadLimiter;
  readonly monotonicMs: () => number;
}

export class Admissions {
  readonly #parts: AdmissionsParts;
  readonly #fills = new Fills();

  constructor(parts: AdmissionsParts) {
    this.#parts = parts;
  }

  /**
   * Admits the user of a token, and applies the change to the cache. Requests with one token share one admission.
   * @param link the link that the admission replaces
   * @returns true: the token can be looked up again
   * @throws Fault (by rejecting) if the store or the feed cannot answer, or too many admissions wait
   */
  admit(
    digest: string,
    entry: IssuerTokenEntry,
    link: CacheEntry<LinkRecord>,
    user: AdmittedIssuerUser,
    patience: Patience,
  ): Promise<boolean> {
    const { admission, feed, limiter, monotonicMs } = this.#parts;
    return this.#fills.join(digest, limiter, patience, async () => {
      const result = await admission.admit(user);
      const refused = result.kind === 'refused' ? result.reason : undefined;
      if (refused === undefined) await feed.catchUp();
      entry.admission = { link, refused, untilMs: monotonicMs() + REFUSED_TTL_MS };
      return true;
    });
  }
}
