/**
 * The data of the demo: two tenants with roles, policies and users, API keys, and the traffic of the last week.
 * Existing data stays as it is; only the two printed keys get a new secret at every start.
 */

import type { DemoIssuer } from '../demo/issuer.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { createAsOperator, rotateAsOperator } from '../iam/webhooks/as-operator.ts';
import { listWebhooks } from '../iam/webhooks/queries.ts';
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

const EVENTS = ['login.locked', 'key.*', 'budget.*', 'session.*'];

/**
 * Has the tenant acme send some of its events to the receiver of the demo. Creates the webhook, or gives it a new secret if an earlier start has created it.
 */
export async function seedWebhook(
  parts: Parameters<typeof createAsOperator>[0],
  { eventsUrl: url, verifyEvents }: Pick<DemoIssuer, 'eventsUrl' | 'verifyEvents'>,
): Promise<void> {
  const scope = { kind: 'one', tenant: ACME } as const;
  const webhooks = await listWebhooks(parts.db.knex, scope, { after: undefined, take: 100 });
  const known = webhooks.find((webhook) => webhook.url === url);
  const { secret } =
    known === undefined
      ? await createAsOperator(parts, ACME, { url, events: EVENTS, description: 'The receiver of the demo' })
      : await rotateAsOperator(parts, known);
  verifyEvents(secret);
}
