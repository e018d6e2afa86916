/** The webhook of the demo: the tenant acme sends some of its events to the receiver of the demo. */

import type { DemoIssuer } from '../demo/issuer.ts';
import { createAsOperator, rotateAsOperator } from '../iam/webhooks/as-operator.ts';
import { listWebhooks } from '../iam/webhooks/queries.ts';
import { ACME } from './demo-setup.ts';

const EVENTS = ['login.locked', 'key.*', 'budget.*', 'session.*'];

/** Creates the webhook, or gives it a new secret if an earlier start has created it. */
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
