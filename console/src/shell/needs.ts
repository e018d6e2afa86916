/** The permission that each screen needs. Every user may open the other screens, which show only permitted data. */

import { useMatches } from '@tanstack/react-router';
import type { Client } from '../../../client/index.ts';
import { covers, useMe } from '../api/session.ts';

export interface Need {
  readonly permission: string;
  /** It works for platform administrators only. */
  readonly isPlatform: boolean;
  /**
   * The request of the screen's first page, as small as it can be: the server has the last word, and its answer has a
   * request id.
   */
  readonly request: string;
  readonly ask: (client: Client, signal: AbortSignal) => Promise<unknown>;
}

/** The paths of the first pages. */
type FirstPage =
  | '/v1/iam/users'
  | '/v1/iam/roles'
  | '/v1/iam/policies'
  | '/v1/iam/issuers'
  | '/v1/iam/usage'
  | '/v1/iam/budgets'
  | '/v1/iam/webhooks'
  | '/v1/iam/audit'
  | '/v1/iam/tenants';

const query = { limit: 1 };

function need(permission: string, path: FirstPage): Need {
  return {
    permission,
    isPlatform: false,
    request: `GET ${path}?limit=1`,
    ask: (client, signal) => client.request('GET', path, { query, signal }),
  };
}

export const NEEDS = {
  users: need('admin:users', '/v1/iam/users'),
  roles: need('admin:roles', '/v1/iam/roles'),
  policies: need('admin:policies', '/v1/iam/policies'),
  issuers: need('admin:issuers', '/v1/iam/issuers'),
  access: {
    permission: 'admin:policies',
    isPlatform: false,
    request: 'GET /v1/iam/explain/who-can?permission=chat:write&limit=1',
    ask: (client, signal) =>
      client.request('GET', '/v1/iam/explain/who-can', { query: { ...query, permission: 'chat:write' }, signal }),
  },
  trial: {
    permission: 'audit:read',
    isPlatform: false,
    request: 'GET /v1/iam/decisions/trial',
    ask: (client, signal) => client.request('GET', '/v1/iam/decisions/trial', { signal }),
  },
  usage: need('usage:read', '/v1/iam/usage'),
  spend: need('usage:read', '/v1/iam/usage'),
  budgets: need('usage:read', '/v1/iam/budgets'),
  prices: {
    permission: 'usage:read',
    isPlatform: false,
    request: 'GET /v1/iam/prices',
    ask: (client, signal) => client.request('GET', '/v1/iam/prices', { signal }),
  },
  webhooks: need('admin:webhooks', '/v1/iam/webhooks'),
  audit: need('audit:read', '/v1/iam/audit'),
  tenants: { ...need('admin:tenants', '/v1/iam/tenants'), isPlatform: true },
  // A test of the directory would try a login; the tenants need the same.
  directory: { ...need('admin:tenants', '/v1/iam/tenants'), isPlatform: true },
} satisfies Readonly<Record<string, Need>>;

/** A screen that needs a permission. */
export type GuardedScreen = keyof typeof NEEDS;

declare module '@tanstack/react-router' {
  interface StaticDataRouteOption {
    /** Absent if every user may open the route. */
    readonly guarded?: GuardedScreen;
  }
}

/** Returns the screen of the address, if it needs a permission. */
export function useGuardedScreen(): GuardedScreen | undefined {
  return useMatches({ select: (matches) => matches.at(-1)?.staticData.guarded });
}

/** Returns a function that reports whether the caller has the permission of a screen. */
export function useMayOpen(): (screen: GuardedScreen) => boolean {
  const { permissions, platform_admin: isPlatformAdmin } = useMe();
  return (screen) => {
    const { permission, isPlatform }: Need = NEEDS[screen];
    return (isPlatformAdmin || !isPlatform) && permissions.some((pattern) => covers(pattern, permission));
  };
}
