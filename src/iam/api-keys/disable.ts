/** Disables and enables a key. A disabled key keeps its secret, its rights and its place among the active keys. */

import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayActOnKey, mayChangeKey, mayGive } from '../caller/escalation.ts';
import { change } from '../change/change.ts';
import { type KeyResource, keyResource } from './entity.ts';
import { setKeyDisabled } from './queries.ts';
import { refuseFaster, refuseOutliving } from './request.ts';
import { audited, holdUsableKey } from './update.ts';

/**
 * Needs what a revocation needs. A second request changes nothing.
 * @throws Refusal of the decision; `not_found`, `revoked`, `escalation`
 */
export async function disableKey(parts: AdminParts, caller: Caller, text: string): Promise<KeyResource> {
  const entry = { action: 'api_key.disable', target: { type: 'api_key', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    await mayActOnKey(trx, caller, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    return audited(caller, audit, key, key.disabled_at === null ? await setKeyDisabled(trx, key, true) : key);
  });
}

/**
 * Gives the rights of a disabled key back, so that it needs what the creation of the key needs. A second request
 * changes nothing.
 * @throws Refusal of the decision; `not_found`, `revoked`, `escalation`
 */
export async function enableKey(parts: AdminParts, caller: Caller, text: string): Promise<KeyResource> {
  const entry = { action: 'api_key.enable', target: { type: 'api_key', id: text }, existing: true } as const;
  return change(parts, caller, entry, async ({ trx, caller, audit, checkPreconditions }) => {
    const key = await holdUsableKey(trx, caller, text);
    await mayChangeKey(trx, caller, key);
    mayGive(caller, { permissions: key.scopes, constraints: key.resource_constraints });
    await refuseOutliving(trx, caller, key.expires_at);
    await refuseFaster(trx, caller, undefined, key);
    checkPreconditions(keyResource(key, caller.nowMs));
    return audited(caller, audit, key, key.disabled_at === null ? key : await setKeyDisabled(trx, key, false));
  });
}
