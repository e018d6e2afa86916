/** Tells which API keys proved themselves, to whoever keeps their last use. */

import type { HeaderValue } from '../decision/model.ts';
import type { CredentialForm } from '../domain/credential.ts';
import type { KeyId } from '../domain/ids.ts';
import type { Resolution } from './resolution.ts';

interface Resolver {
  resolve(credential: CredentialForm, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
}

/** Called for each proof, on the path of a request: it must neither wait nor throw. */
export interface UseListener {
  note(key: KeyId, nowMs: number): void;
}

/** The same resolver, for the doors: explanations look at keys without using them. A key that proved itself was used, whatever was decided then. */
export function notingUses(resolver: Resolver, uses: UseListener): Resolver {
  const noted = (resolution: Resolution, nowMs: number): Resolution => {
    const { identity } = resolution;
    if (identity.kind === 'proved' && identity.principal.kind === 'api_key') uses.note(identity.principal.id, nowMs);
    return resolution;
  };
  return {
    resolve(credential, tenant, nowMs) {
      const resolution = resolver.resolve(credential, tenant, nowMs);
      return resolution instanceof Promise ? resolution.then((found) => noted(found, nowMs)) : noted(resolution, nowMs);
    },
  };
}
