/**
 * What the demo needs to show something: two tenants with roles, policies and users, API keys, and the traffic of the
 * last week. What is there already stays as it is; only the two printed keys get a new secret at every start.
 */

import { makeId, parseRoleName } from '../domain/ids.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import type { Actor } from '../iam/change/audit-row.ts';
import { changeAsSystem } from '../iam/change/change.ts';
import { insertUser, type StoredUser, setManualRoles } from '../iam/users/queries.ts';
import { ensureKeys, renewKey, userOf } from './demo-keys.ts';
import { ACME, DEVELOPER, ensureSetup, TRIAL } from './demo-setup.ts';
import { seedTraffic } from './demo-traffic.ts';

export interface DemoAccess {
  /** The whole key, to be shown once. */
  readonly key: string;
  /** The e-mail address of its owner. */
  readonly owner: string;
  /** The whole key of the tenant with tight limits. */
  readonly trialKey: string;
  /** Secrets of the other keys, by name: those that this start made. */
  readonly made: ReadonlyMap<string, string>;
}

/** Among them one that its owner's role does not cover: a key never can more than its owner. */
const KEY_SCOPES = ['chat:*', 'embeddings:*', 'rag:*', 'agents:*', 'models:read'];

/** Safe to run at every start. Rejects with a Refusal whose message says what stands in the way, or a Fault. */
export async function seedDemo(parts: AdminParts): Promise<DemoAccess> {
  await ensureSetup(parts);
  const made = await ensureKeys(parts);
  await seedTraffic(parts);
  return {
    key: await renewKey(parts, ACME, await ensureDeveloper(parts), KEY_SCOPES),
    owner: DEVELOPER,
    trialKey: await renewKey(parts, TRIAL, undefined, ['chat:*', 'embeddings:*']),
    made,
  };
}

/** Makes the owner of the printed key anew if somebody deleted it. */
async function ensureDeveloper(parts: AdminParts): Promise<StoredUser['id']> {
  const present = await userOf(parts, ACME, DEVELOPER);
  if (present !== undefined) return present.id;
  const id = makeId('usr', parts.now(), parts.random(10));
  const actor: Actor = { type: 'system', id: undefined, tenant: ACME, address: undefined, requestId: undefined };
  await changeAsSystem(parts, actor, { action: 'user.create', target: { type: 'user', id } }, async (trx) => {
    const user = { id, tenantId: ACME, email: DEVELOPER, name: 'Dana Developer', department: null, passwordHash: null };
    await insertUser(trx, user);
    const role = parseRoleName('developer');
    await setManualRoles(trx, id, role === undefined ? [] : [role]);
  });
  return id;
}
