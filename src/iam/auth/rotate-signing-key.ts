/** Rotates the signing key on the operator's command, without a caller. */

import { currentKey, type RotationTimes } from '../../identity/signing-key-plan.ts';
import { rotateSigningKeys } from '../../identity/signing-keys.ts';
import { changeSigningKeys } from '../../store/signing-keys.ts';
import type { AdminParts } from '../caller/caller.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { changeAsSystem } from '../change/change.ts';

interface RotateParts extends Pick<AdminParts, 'db' | 'feed' | 'flush' | 'now'> {
  /** The key that private keys are sealed under. It must be that of the servers. */
  readonly secretKey: string;
  readonly times: RotationTimes;
}

/** The schedule of the keys. Times in milliseconds since the epoch. */
export interface Rotation {
  /** False if a next key was waiting already, so nothing changed. */
  readonly made: boolean;
  /** The current key. */
  readonly current: string;
  /** The next key, which is published now and signs later. Undefined if this is the first key. */
  readonly next:
    | {
        readonly kid: string;
        readonly signsFromMs: number;
        /** The time at which the current key leaves the key set. */
        readonly currentGoneMs: number;
      }
    | undefined;
}

/**
 * Publishes the next signing key. It takes over a day later, when every verifier has fetched it, so no token is
 * rejected.
 */
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
