/** Has the queries read again that show what a change made old. */

import { queries } from './queries.ts';

/** The second part of the keys of the queries that show resources of a kind. The first part is the tenant. */
const SHOWN = {
  budgets: ['budgets', 'budget', 'audit'],
  issuers: ['issuers', 'issuer', 'keys', 'users', 'user', 'audit'],
  keys: ['keys', 'key', 'audit'],
  policies: ['policies', 'policy', 'audit'],
  roles: ['roles', 'role', 'users', 'user', 'audit'],
  users: ['users', 'user', 'sessions of', 'keys', 'overview', 'audit'],
  webhooks: ['webhooks', 'webhook', 'deliveries', 'audit'],
} as const;

/** @param id of a user or key, whose name may have changed */
export async function changed(tenant: string, kind: keyof typeof SHOWN, id?: string): Promise<void> {
  const keys: (readonly string[])[] = SHOWN[kind].map((part) => [tenant, part]);
  if (id !== undefined) keys.push([tenant, 'name', id]);
  // The change may be about the caller.
  if (kind === 'roles' || kind === 'users') keys.push(['me']);
  await invalidate(keys);
}

export async function invalidate(keys: readonly (readonly string[])[]): Promise<void> {
  await Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
}
