/** Rotating the signing key on command, for whoever runs the server. No caller is asked. */

import { currentKey, type RotationTimes } from '../../identity/signing-key-plan.ts';
import { rotateSigningKeys } from '../../identity/signing-keys.ts';
import { changeSigningKeys } from '../../store/signing-keys.ts';
import type { AdminParts } from '../caller/caller.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';

export interface RotateParts extends Pick<AdminParts, 'db' | 'feed' | 'flush' | 'now'> {
  /** What private keys are sealed under. It must be the servers' own. */
  readonly secretKey: string;
  readonly times: RotationTimes;
}

/** What happens when. Times in milliseconds since the epoch. */
export interface Rotation {
  /** False when a next key was waiting already: nothing was changed. */
  readonly made: boolean;
  /** Signs now. */
  readonly current: string;
  /** Published now and signs later; undefined when the first key of all was made. */
  readonly next:
    | {
        readonly kid: string;
        readonly signsFromMs: number /** The current key is gone from the key set. */;
        readonly currentGoneMs: number;
      }
    | undefined;
}

/** Publishes the next signing key; it takes over when everybody has had a day to learn of it, so no token is refused on the way. */
export async function rotateSigningKey(parts: RotateParts): Promise<Rotation> {
  const nowMs = parts.now();
  return changeAsSystem(parts, OPERATOR, { action: 'signing_key.rotate' }, async (trx, audit) => {
    const store: Parameters<typeof rotateSigningKeys>[0] = { change: (plan) => changeSigningKeys(trx, plan) };
    const { keys, made } = await rotateSigningKeys(store, { ...parts, nowMs });
    const current = currentKey(keys, nowMs);
    if (current === undefined) throw new Error('the rotation left no signing key');
    const next = keys.find((key) => key.signsFromMs > nowMs);
    audit.target = { type: 'signing_key', id: next?.kid ?? current.kid };
    audit.after = { made, signs_from: new Date(next?.signsFromMs ?? current.signsFromMs).toISOString() };
    return {
      made,
      current: current.kid,
      next: next && {
        kid: next.kid,
        signsFromMs: next.signsFromMs,
        currentGoneMs: next.signsFromMs + parts.times.keepRetiredMs,
      },
    };
  });
}
