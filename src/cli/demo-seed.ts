/**
 * The data of the demo: two tenants with roles, policies and users, API keys, and the traffic of the last week.
 * Existing data stays as it is; only the two printed keys get a new secret at every start.
 */

import type { AdminParts } from '../iam/caller/caller.ts';
import { ensureKeys, renewKey } from './demo-keys.ts';
import { ACME, DEVELOPER, ensureSetup, TRIAL } from './demo-setup.ts';
import { seedTraffic } from './demo-traffic.ts';

interface DemoAccess {
  /** The whole key, which only this start shows. */
  readonly key: string;
  /** The email address of its owner. */
  readonly owner: string;
  /** The whole key of the tenant with small limits. */
  readonly trialKey: string;
  /** The secrets of the permanent keys that this start created, by name. */
  readonly made: ReadonlyMap<string, string>;
}

/** One of them is outside the owner's role: a key never has more permissions than its owner. */
const KEY_SCOPES = ['chat:*', 'embeddings:*', 'rag:*', 'agents:*', 'models:read'];

/** Idempotent, so every start runs it. Rejects with a Refusal whose message has the reason, or with a Fault. */
export async function seedDemo(parts: AdminParts): Promise<DemoAccess> {
  const owner = await ensureSetup(parts);
  const made = await ensureKeys(parts);
  await seedTraffic(parts);
  return {
    key: await renewKey(parts, ACME, owner, KEY_SCOPES),
    owner: DEVELOPER,
    trialKey: await renewKey(parts, TRIAL, null, ['chat:*', 'embeddings:*']),
    made,
  };
}
