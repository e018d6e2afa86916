/**
 * Access tokens with verified signature and claims, so that each token is verified once. A verified token alone proves
 * no principal: each lookup reads its session and its user.
 *
 * A change of the signing keys clears everything. A verification that began before the change is not stored and runs
 * again.
 */

import type { Patience } from './load-limiter.ts';
import type { TokenVerifier, VerifiedToken } from './ports.ts';
import { LOADS_PER_FILL } from './read-through-cache.ts';
import { VerificationCache, type VerificationCacheParts, type VerificationEntry } from './verification-cache.ts';

interface VerifiedTokensParts extends VerificationCacheParts {
  readonly verifier: TokenVerifier;
}

interface TokenEntry extends VerificationEntry {
  readonly token: VerifiedToken;
}

export class VerifiedTokens extends VerificationCache<TokenEntry> {
  readonly #parts: VerifiedTokensParts;
  #generation = 0;

  constructor(parts: VerifiedTokensParts) {
    super(parts);
    this.#parts = parts;
  }

  /**
   * Returns the verifier's result; undefined = the token must be verified. The caller compares the times of a valid
   * token.
   */
  peek(digest: string, monotonicMs: number): VerifiedToken | undefined {
    return this.find(digest, monotonicMs)?.token;
  }

  fill(digest: string, token: string, patience: Patience): Promise<boolean> {
    return this.join(digest, patience, () => this.#verifyUntilStored(digest, token));
  }

  override clear(): void {
    super.clear();
    this.#generation++;
  }

  /** A change of the signing keys clears the cache. */
  protected override holds(): boolean {
    return true;
  }

  async #verifyUntilStored(digest: string, text: string): Promise<boolean> {
    const { verifier, monotonicMs } = this.#parts;
    for (let attempt = 0; attempt < LOADS_PER_FILL; attempt++) {
      const generation = this.#generation;
      const verifiedAtMs = Math.floor(monotonicMs());
      const token = Object.freeze(await verifier.verify(text));
      if (generation === this.#generation) {
        this.store(digest, Object.freeze({ token, verifiedAtMs }), token.kind === 'valid');
        return true;
      }
      this.rejectFill();
    }
    return false;
  }
}
