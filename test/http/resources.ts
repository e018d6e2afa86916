/** One fresh resource of each kind, made through the API. */

import { type Harness, type Reply, text } from './harness.ts';

export const KINDS = ['users', 'roles', 'policies', 'tenants', 'api-keys', 'issuers', 'budgets', 'webhooks'] as const;
export type Kind = (typeof KINDS)[number];

export interface Made {
  readonly id: string;
  readonly path: string;
  /** The answer that made it. */
  readonly made: Reply;
  readonly table: string;
}

let count = 0;

/** Returns the body of a POST that creates another one. */
export function newBody(kind: Kind): object {
  const n = ++count;
  switch (kind) {
    case 'users':
      return { email: `one-${n}@example.test`, name: `One ${n}` };
    case 'roles':
      return { name: `role-${n}`, permissions: ['chat:read'] };
    case 'policies':
      return { name: `policy-${n}`, effect: 'deny', actions: ['rag:*'], resources: ['*'], applies_to: 'roles' };
    case 'tenants':
      return { id: `tenant-${n}`, name: `Tenant ${n}` };
    case 'api-keys':
      return { description: `Key ${n}`, scopes: ['chat:read'], expires_in_days: 30 };
    // No key can be fetched from this address, and no resolution of a name takes time.
    case 'issuers':
      return { name: `issuer-${n}`, issuer: `https://127.0.0.1:1/${n}`, audiences: ['postern'] };
    // No two select the same keys, because a request counts in few of them.
    case 'budgets':
      return {
        name: `budget-${n}`,
        unit: 'tokens',
        limit: 1000,
        period: 'month',
        applies_to: { metadata: { number: String(n) } },
      };
    // Sends nothing: its events are those of a tenant without changes.
    case 'webhooks':
      return { url: `https://hooks.example/${n}`, events: ['key.*'] };
    default:
      return kind satisfies never;
  }
}

/** As the platform administrator, in the first tenant. A webhook has a tenant of its own, which may have few. */
export async function makeOne(h: Harness, kind: Kind): Promise<Made> {
  const as = h.root.token;
  const tenant = kind === 'webhooks' ? text((await makeOne(h, 'tenants')).made.json, 'id') : 'default';
  const made = await h.api('POST', `/v1/iam/${kind}`, { as, tenant, body: newBody(kind) });
  const id = text(made.json, kind === 'roles' || kind === 'policies' ? 'name' : 'id');
  return { id, path: `/v1/iam/${kind}/${id}`, made, table: kind.replace('-', '_') };
}
