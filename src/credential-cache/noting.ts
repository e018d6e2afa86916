/** Tells which API keys proved themselves, to whoever keeps their last use: at most once a minute of each credential that stays warm. */

import type { KeyId } from '../domain/ids.ts';
import type { CredentialResolver, Resolution } from './resolution.ts';

/** Called on the path of a request: it must neither wait nor throw. */
export interface UseListener {
  /** @returns false when there was no room to note it: then the next use is told too */
  note(key: KeyId, nowMs: number): boolean;
}

/** How exact the time of the last use is, and how often one key is told at most while it stays warm. */
export const LAST_USE_PRECISION_MS = 60_000;

/** The same resolver, for the doors: explanations look at keys without using them. A key that proved itself was used, whatever was decided then. */
export function notingUses(resolver: CredentialResolver, uses: UseListener): CredentialResolver {
  const noted = (resolution: Resolution, nowMs: number): Resolution => {
    const { identity, memo } = resolution;
    if (identity.kind !== 'proved' || identity.principal.kind !== 'api_key') return resolution;
    // Either way: the clock may have been set back.
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
