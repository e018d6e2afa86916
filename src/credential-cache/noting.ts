/** Reports which API keys authenticated a request: at most once a minute for each cached credential. */

import type { KeyId } from '../domain/ids.ts';
import type { CredentialResolver, Resolution } from './resolution.ts';

/** Called on the path of a request: it must neither wait nor throw. */
interface UseListener {
  /** @returns false if the listener is full: then the next use is reported as well */
  note(key: KeyId, nowMs: number): boolean;
}

/** The precision of the time of the last use, and the shortest interval between two reports of one cached key. */
export const LAST_USE_PRECISION_MS = 60_000;

/**
 * Wraps the resolver of a listener. Explanations use the resolver itself, because they examine keys without using them.
 * A key that authenticated a request was used, even if the decision is a denial.
 */
export function notingUses(resolver: CredentialResolver, uses: UseListener): CredentialResolver {
  const noted = (resolution: Resolution, nowMs: number): Resolution => {
    const { identity, memo } = resolution;
    if (identity.kind !== 'proved' || identity.principal.kind !== 'api_key') return resolution;
    // In both directions, because the clock may have been set back.
    const due = memo === undefined || Math.abs(nowMs - memo.notedAtMs) >= LAST_USE_PRECISION_MS;
    if (due && uses.note(identity.principal.id, nowMs) && memo !== undefined) memo.notedAtMs = nowMs;
    return resolution;
  };
  return {
    resolve(credential, tenant, nowMs, client, maxWaitMs) {
      const resolution = resolver.resolve(credential, tenant, nowMs, client, maxWaitMs);
      return resolution instanceof Promise ? resolution.then((found) => noted(found, nowMs)) : noted(resolution, nowMs);
    },
  };
}
